// Cases of the network: what programs reach, and what they do not.

import type { NetworkOptions, Sandbox } from "../../src/index.js";
import { check, equal, output, rejection, type Case, type World } from "../check.js";
import type { SeenRequest } from "../outside-server.js";

/** A sandbox that may reach the servers of the tests. */
function online({ create, outside }: World, options: NetworkOptions = {}): Promise<Sandbox> {
  const hosts = outside.hosts ? { hosts: outside.hosts } : {};
  return create({ network: { allow: ["web.test"], ...hosts, ...options }, timeoutMs: 100_000 });
}

const places = ({ outside }: World) => ({
  plain: `http://web.test:${outside.plainPort}`, secure: `https://web.test:${outside.securePort}`,
});

/** The requests that came to the servers, with this path. */
async function seen({ outside }: World, path: string): Promise<SeenRequest[]> {
  const all = (await (await fetch(outside.log)).json()) as SeenRequest[];
  return all.filter((request) => request.path === path);
}

export const networkCases: Case[] = [
  {
    name: "without a network, look-ups and connections fail at once",
    async run({ shared }) {
      const began = performance.now();
      const name = await shared.run("getent hosts web.test");
      equal(name.exitCode, 2);
      check(name.stderr.includes("the sandbox has no network"), name.stderr);
      const address = await shared.run("curl -sS http://192.168.7.7/");
      equal(address.exitCode, 7);
      check(performance.now() - began < 20_000, "both fail soon");
    },
  },
  {
    name: "programs reach an allowed host by http and https",
    async run(world) {
      const sandbox = await online(world);
      const { plain, secure } = places(world);
      for (const place of [plain, secure]) {
        equal(await output(sandbox, `curl -sS ${place}/curl?a=b`), "GET /curl?a=b 0\n");
        equal(await output(sandbox, `curl -sS -d hello ${place}/post`), "POST /post 5\n");
        equal(await output(sandbox, `wget -qO- ${place}/wget`), "GET /wget 0\n");
      }
      const code = `import urllib.request as u; print(u.urlopen('${secure}/py').read().decode())`;
      equal(await output(sandbox, `python3 -c "${code}"`), "GET /py 0\n\n");
      const two = `curl -sS ${secure}/one ${secure}/two`; // on one connection
      equal(await output(sandbox, two), "GET /one 0\nGET /two 0\n");
      equal(await output(sandbox, `curl -sSI ${plain}/head | head -1`), "HTTP/1.1 200 OK\r\n");
      const [event] = (await sandbox.networkLog()).filter(({ kind }) => kind === "request");
      equal([event!.allowed, event!.host, event!.method, event!.path, event!.status],
        [true, "web.test", "GET", "/curl", 200]);
    },
  },
  {
    name: "large bodies pass in both directions",
    async run(world) {
      const sandbox = await online(world);
      const { plain, secure } = places(world);
      for (const place of [plain, secure]) {
        equal(await output(sandbox, `curl -sS ${place}/big | wc -c`), "3000000\n");
        const upload = `head -c 2000000 /dev/zero | curl -sS -T - ${place}/up`;
        equal(await output(sandbox, upload), "PUT /up 2000000\n");
      }
    },
  },
  {
    name: "git clones from an allowed host",
    async run(world) {
      const sandbox = await online(world);
      const store = `${places(world).secure}/store`;
      await output(sandbox, `
        git init -q one && cd one && echo text > a && git add a
        git -c user.name=n -c user.email=e commit -qm first && cd ..
        git clone -q --bare one one.git && git -C one.git update-server-info
        find one.git -type f | while read -r file; do curl -sS -f -T $file ${store}/$file || exit 1; done
        git clone -q ${store}/one.git two`);
      equal(await output(sandbox, "cat two/a"), "text\n");
    },
  },
  {
    name: "a host that no rule names is refused, and the user is told",
    async run(world) {
      const sandbox = await online(world);
      const result = await sandbox.run(`curl -sS http://other.web.test:${world.outside.plainPort}/no`);
      equal(result.exitCode, 6);
      check(result.stderr.includes("add 'other.web.test' to network.allow"), result.stderr);
      equal(await seen(world, "/no"), []);
    },
  },
  {
    name: "rules on methods and paths are decided for each request",
    async run(world) {
      const sandbox = await online(world, { allow: ["GET web.test/open/*"] });
      const { secure } = places(world);
      equal(await output(sandbox, `curl -sS ${secure}/open/a`), "GET /open/a 0\n");
      for (const command of [
        `curl -sS -d x ${secure}/open/b`, `curl -sS ${secure}/closed`,
        `curl -sS --path-as-is ${secure}/open/../closed`, `curl -sS ${secure}/open/%2e%2e/closed`,
        `curl -sS -H 'X-HTTP-Method-Override: DELETE' ${secure}/open/c`,
      ]) {
        const answer = await sandbox.run(`${command} -o text -w '%{http_code}'; cat text`);
        check(answer.stdout.startsWith("403wasmsand: "), `${command}: ${answer.stdout}`);
      }
      for (const path of ["/open/b", "/closed", "/open/c"]) equal(await seen(world, path), []);
    },
  },
  {
    name: "a redirect to a host that is not allowed reaches nothing",
    async run(world) {
      const sandbox = await online(world);
      const result = await sandbox.run(`curl -sSfL ${places(world).plain}/elsewhere`);
      check(result.exitCode !== 0, "curl fails");
      equal((await seen(world, "/elsewhere")).length, 1);
      equal(await seen(world, "/found"), []);
    },
  },
  {
    name: "the budget bounds a download and the number of requests",
    async run(world) {
      const sandbox = await online(world, { bytesIn: 1_000_000, requests: 3 });
      const { plain } = places(world);
      const endless = await sandbox.run(`curl -sS ${plain}/endless -o big; wc -c < big`);
      check(endless.stderr.includes("raise bytes_in"), endless.stderr);
      check(Number(endless.stdout) <= 1_100_000, `it got ${endless.stdout}`);
      const few = await online(world, { requests: 2 });
      const three = `for i in 1 2 3; do curl -s -o /dev/null -w '%{http_code} ' ${plain}/few; done`;
      equal(await output(few, three), "200 200 403 ");
      equal((await seen(world, "/few")).length, 2);
    },
  },
  {
    name: "a response that is cut off is not taken for a whole one",
    async run(world) {
      const sandbox = await online(world);
      for (const place of Object.values(places(world))) {
        const result = await sandbox.run(`curl -sS ${place}/cut`);
        check([18, 56].includes(result.exitCode), `exit code ${result.exitCode}: ${result.stderr}`);
      }
    },
  },
  {
    name: "a program that waits for a host can be ended",
    async run(world) {
      const sandbox = await online(world);
      const { secure } = places(world);
      equal((await sandbox.run(`curl -sS ${secure}/silent`, { timeoutMs: 1500 })).exitCode, 124);
      equal(await output(sandbox, `curl -sS ${secure}/after`), "GET /after 0\n");
    },
  },
  {
    name: "requests carry no cookies and no referrer of the page",
    async run(world) {
      const sandbox = await online(world);
      const { secure } = places(world);
      await output(sandbox, `curl -sS ${secure}/cookie; curl -sS ${secure}/after-cookie`);
      const [request] = await seen(world, "/after-cookie");
      equal([request!.headers.cookie, request!.headers.referer], [undefined, undefined]);
    },
  },
  {
    name: "a secret header is added outside the sandbox",
    async run(world) {
      const secrets = { "web.test": { "X-Key": "the-secret-value" } };
      const sandbox = await online(world, { secrets });
      const { plain, secure } = places(world);
      equal(await output(sandbox, `curl -sS -H 'X-Key: mine' ${secure}/secret`), "GET /secret 0\n");
      const [request] = await seen(world, "/secret");
      equal(request!.headers["x-key"], "the-secret-value");
      const clear = await output(sandbox, `curl -sS ${plain}/secret-in-clear`);
      check(clear.includes("use https://"), clear);
      equal(await seen(world, "/secret-in-clear"), []);
    },
  },
  {
    name: "hostile bytes end their connection alone",
    async run(world) {
      const sandbox = await online(world);
      const { plainPort, securePort } = world.outside;
      const send = (bytes: string, port: number) =>
        sandbox.run(`printf '${bytes}' | timeout 2 nc web.test ${port} | head -c 300`);
      for (const bytes of [
        "\\x16\\x03\\x01\\xff\\xff", "\\x16\\x03\\x01\\x00\\x04\\x01\\x00\\x00\\x00",
        "\\x16\\x03\\x01\\x00\\x0a\\x01\\x00\\xff\\xff\\x03\\x03\\x00\\x00\\x00\\x00",
        "\\x16\\x03\\x03\\x00\\x02\\x14\\x00", "\\x16junk",
      ]) await send(bytes, securePort);
      const other = await send("GET / HTTP/1.1\\r\\nHost: other.web.test\\r\\n\\r\\n", plainPort);
      check(other.stdout.startsWith("HTTP/1.1 421"), other.stdout);
      const folded = await send("GET / HTTP/1.1\\r\\nHost: web.test\\r\\n a: b\\r\\n\\r\\n", plainPort);
      check(folded.stdout.startsWith("HTTP/1.1 400"), folded.stdout);
      equal(await output(sandbox, `curl -sS ${places(world).secure}/alive`), "GET /alive 0\n");
    },
  },
  {
    name: "TLS is only for the host that a program connected to",
    async run(world) {
      const sandbox = await online(world, { allow: ["*.web.test", "web.test"] });
      const { securePort } = world.outside;
      const other = `--connect-to other.web.test:${securePort}:web.test:${securePort}`;
      const result = await sandbox.run(`curl -sS ${other} https://other.web.test:${securePort}/sni`);
      check([35, 60].includes(result.exitCode), `exit code ${result.exitCode}: ${result.stderr}`);
      equal(await seen(world, "/sni"), []);
    },
  },
  {
    name: "rules can be added and taken back, and stay over a restore",
    async run(world) {
      const sandbox = await online(world, { allow: [] });
      const get = `curl -sS ${places(world).secure}/later`;
      equal((await sandbox.run(get)).exitCode, 6);
      const before = await sandbox.snapshot();
      await sandbox.allowNetwork(["web.test"]);
      equal((await sandbox.networkRules()).allow, ["web.test"]);
      equal(await output(sandbox, get), "GET /later 0\n");
      await sandbox.restore(before);
      equal(await output(sandbox, get), "GET /later 0\n");
      await sandbox.denyNetwork(["web.test"]);
      equal((await sandbox.run(get)).exitCode, 6);
    },
  },
  {
    name: "wrong rules and options are errors that say what is right",
    async run({ shared, create, api }) {
      const wrong = await rejection(shared.allowNetwork(["https://a/"]), api.InvalidArgumentError);
      check(wrong.message.includes("leave out the scheme"), wrong.message);
      await rejection(create({ network: { proxy: "environment" } as never }), api.UnsupportedError);
      await rejection(create({ network: { alow: [] } as never }), api.InvalidArgumentError);
    },
  },
];
