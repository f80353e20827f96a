"""The service: the only folder that knows HTTP.

Takes requests, command lines and settings. Holds one embedded engine, open connections and nothing else.
Gives answers as JSON, CSV, Arrow and server-sent events. Does not know how an answer comes about.
"""
