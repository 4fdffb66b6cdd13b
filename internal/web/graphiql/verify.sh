#!/bin/sh
# Builds the page anew from package-lock.json in a temporary folder and compares it with the committed dist.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp -R "$here/src" "$here/build.mjs" "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$tmp/"
cd "$tmp"
npm ci --silent
node build.mjs "$tmp/dist"
if ! diff -rq "$here/../dist" "$tmp/dist"; then
  echo "internal/web/dist is not what its sources give: run npm ci && npm run build in internal/web/graphiql" >&2
  exit 1
fi
echo "internal/web/dist is what its sources give"
