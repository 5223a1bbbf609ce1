"""What strangers may use of a public page: a line, requests a minute, tokens a day. The rules are pure; gate.py applies them to runs."""
