"""Signals: handlers, alarms, KeyboardInterrupt, waiting for them, ignoring them."""

import os
import signal
import subprocess
import sys
import time

caught = []
signal.signal(signal.SIGUSR1, lambda number, frame: caught.append(signal.Signals(number).name))
os.kill(os.getpid(), signal.SIGUSR1)
signal.raise_signal(signal.SIGUSR1)
print(caught)


def alarmed(number, frame):
    raise TimeoutError("too slow")


signal.signal(signal.SIGALRM, alarmed)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    while True:
        pass
except TimeoutError as error:
    print(error)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    time.sleep(10)
except TimeoutError:
    print("sleep ended")
try:
    signal.raise_signal(signal.SIGINT)
    time.sleep(1)
except KeyboardInterrupt:
    print("interrupted")
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.kill(os.getpid(), signal.SIGTERM)
print(signal.getsignal(signal.SIGTERM), signal.strsignal(11))
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
os.kill(os.getpid(), signal.SIGUSR2)
print(signal.sigpending(), signal.sigwait({signal.SIGUSR2}))
code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
print(subprocess.run([sys.executable, "-c", code]).returncode)
code = "import time\ntry:\n  print('ready', flush=True); time.sleep(30)\nexcept KeyboardInterrupt: print('bye'); raise SystemExit(4)"
child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
child.send_signal(signal.SIGINT)
print(child.communicate()[0], child.returncode)
