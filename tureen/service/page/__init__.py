"""The page: a console in the browser, a client of the HTTP API like any other.

Takes requests for the page's files, and tokens of people who sign in. Holds sessions and the last minutes of the
server's activity. Gives static files with a strict content security policy, and cookies. Does not know how an answer is
computed: everything that the page shows or does is a request to a route of the API, with the scopes of the token.

* `sessions.py`: who is signed in; `assets.py`: the files of `static`, and the headers that they are sent with
* `page_bodies.py`: the bodies of its requests and responses
* `activity.py`: rates and latencies of the last minutes; `manual.py`: the language reference as HTML

`static` has the page itself, in plain HTML, CSS and JavaScript modules.
"""
