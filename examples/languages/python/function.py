"""A function that works background jobs: Daybook asks it by signed requests. It needs the standard library alone.

DAYBOOK_FUNCTIONS_FILE of the worker names it:

    - type: count_words
      url: http://127.0.0.1:8090/count_words
      secret: functions
      callback: 1h
      callback_url: http://127.0.0.1:8080

FUNCTION_SECRET is the secret: whsec_ and base64. FUNCTION_PORT is where to listen; 0 is any free port, which is printed.
"""

import base64
import hashlib
import hmac
import json
import os
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = base64.b64decode(os.environ["FUNCTION_SECRET"].removeprefix("whsec_"))
TOLERANCE = 5 * 60  # seconds; an older request may be a repetition by a third party


def is_signed(headers, body: bytes) -> bool:
    """Verifies the signature, by the Standard Webhooks specification."""
    sent_at = headers.get("webhook-timestamp", "")
    if not sent_at.isdigit() or abs(time.time() - int(sent_at)) > TOLERANCE:
        return False
    signed = b".".join([headers.get("webhook-id", "").encode(), sent_at.encode(), body])
    want = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    # There may be several while the secret is changed.
    given = [s.removeprefix("v1,") for s in headers.get("webhook-signature", "").split() if s.startswith("v1,")]
    return any(hmac.compare_digest(want.encode(), s.encode()) for s in given)


def count_words(payload: dict) -> dict:
    """Is the work. It must be repeatable: a request may come twice, with the same idempotencyKey."""
    return {"words": len(payload["text"].split())}


def call_back(callback: dict, payload: dict) -> None:
    """Works in the background, and then calls back. The token in the address is the authorization."""
    try:
        result = count_words(payload)
    except Exception as e:  # whatever it is, the job must learn of it
        result = {"error": {"code": "COUNT_FAILED", "message": str(e)}}
    request = urllib.request.Request(
        callback["url"], data=json.dumps(result).encode(), headers={"Content-Type": "application/json"}, method="POST"
    )
    urllib.request.urlopen(request, timeout=20).close()


class Function(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if not is_signed(self.headers, body):
            return self.answer(401, {"message": "the signature is wrong"})
        job = json.loads(body)
        payload, callback = job["payload"], job.get("callback")
        if not isinstance(payload.get("text"), str):
            return self.answer(422, {"code": "NO_TEXT", "message": "the payload has no text", "final": True})
        if len(payload["text"]) > 1000 and callback and callback.get("url"):
            threading.Thread(target=call_back, args=(callback, payload)).start()
            return self.answer(202, {})
        return self.answer(200, count_words(payload))

    def answer(self, status: int, content: dict) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("FUNCTION_PORT", "0"))), Function)
    print(server.server_port, flush=True)
    server.serve_forever()
