"""E-mail messages: built, printed, parsed, with attachments and encoded headers."""

import email
import mimetypes
from email import policy
from email.header import decode_header
from email.message import EmailMessage
from email.utils import formatdate, parseaddr, parsedate_to_datetime

message = EmailMessage(policy=policy.SMTP)
message["From"] = "Ünï <sender@example.org>"
message["To"] = "a@example.org, b@example.org"
message["Subject"] = "Grüße — report"
message["Date"] = formatdate(0)
message.set_content("Hello,\n\nthe réport is attached.\n")
message.add_attachment(b"a,b\n1,2\n", maintype="text", subtype="csv", filename="data.csv")
message.set_boundary("=====boundary=====")
raw = message.as_bytes()
print(raw.decode())
back = email.message_from_bytes(raw, policy=policy.default)
print(back["subject"], [p.get_filename() for p in back.iter_attachments()], back.get_body().get_content())
print(parseaddr("Name <x@y.z>"), parsedate_to_datetime("Mon, 01 Jan 2024 00:00:00 +0100"))
print(decode_header("=?utf-8?q?caf=C3=A9?="), mimetypes.guess_type("a.json"), mimetypes.guess_type("x.tar.gz"))
