"""The routes, by what they are about; docs/http.md says what they mean."""
