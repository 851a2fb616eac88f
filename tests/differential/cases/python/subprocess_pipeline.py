"""subprocess: output, input, errors, pipelines, timeouts, environments, directories."""

import os
import signal
import subprocess
import sys

print(subprocess.run(["echo", "a b", "$HOME"], capture_output=True, text=True).stdout)
print(subprocess.run("exit 7", shell=True).returncode)
try:
    subprocess.run(["ls", "nowhere"], check=True, capture_output=True, text=True)
except subprocess.CalledProcessError as error:
    print(error, "|", error.stderr)
first = subprocess.Popen(["printf", "b\\na\\nc\\n"], stdout=subprocess.PIPE)
second = subprocess.Popen(["sort", "-r"], stdin=first.stdout, stdout=subprocess.PIPE, text=True)
first.stdout.close()
print(second.communicate()[0].split(), first.wait())
try:
    subprocess.run(["sleep", "60"], timeout=0.05)
except subprocess.TimeoutExpired as error:
    print(error)
os.mkdir("d")
print(subprocess.check_output(["pwd"], cwd="d", text=True).rsplit("/", 1)[1], end="")
print(subprocess.check_output(["env"], env={"ONLY": "this"}))
process = subprocess.Popen(["sleep", "60"])
process.send_signal(signal.SIGTERM)
print(process.wait())
code = "import sys; sys.stdout.write(sys.stdin.read()[::-1]); sys.exit(5)"
done = subprocess.run([sys.executable, "-c", code], input="stressed", text=True, capture_output=True)
print(done.stdout, done.returncode)
with open("log", "w") as log:
    subprocess.run(["sh", "-c", "echo out; echo err >&2"], stdout=log, stderr=subprocess.STDOUT)
print(open("log").read(), os.popen("echo popen").read(), os.system("exit 2") >> 8)
print(subprocess.getstatusoutput("echo x; false"))
big = subprocess.run(["cat"], input=b"x" * 1_000_000, capture_output=True).stdout
print(len(big))
r, w = os.pipe()
subprocess.run(["sh", "-c", f"echo by fd >&{w}"], pass_fds=[w])
os.close(w)
print(os.read(r, 100))
