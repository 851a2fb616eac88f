"""Configuration: configparser, tomllib, string.Template, shlex, getopt, environment."""

import configparser
import getopt
import os
import shlex
import string
import tomllib

config = configparser.ConfigParser()
config.read_string("[DEFAULT]\nbase = /srv\n[web]\nroot = %(base)s/www\nport: 8080\ndebug = yes\n; comment\n[empty]\n")
print(config["web"]["root"], config.getint("web", "port"), config.getboolean("web", "debug"), config.sections())
config["new"] = {"key": "value"}
with open("out.ini", "w") as file:
    config.write(file)
print(open("out.ini").read())
print(tomllib.loads('title = "x"\n[a.b]\nwhen = 2024-01-01T00:00:00Z\nlist = [1, 2.5, "s"]\n[[item]]\nn = 1\n[[item]]\nn = 2\n'))
try:
    tomllib.loads("a = \n")
except tomllib.TOMLDecodeError as error:
    print(error)
print(string.Template("$who owes ${amount} $$").substitute(who="x", amount=5))
print(shlex.split("cmd --name='a b' \"c\\\"d\" # comment", comments=True), shlex.quote("it's"))
print(getopt.getopt(["-a", "1", "--long=x", "rest"], "a:", ["long="]))
os.environ["MADE"] = "here"
print(os.environ.get("MADE"), os.getenv("NOT", "default"), os.path.expandvars("$MADE/x"), os.popen("echo $MADE").read())
