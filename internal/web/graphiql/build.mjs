// Bundles the page into ../dist, or into the folder that is given. The same sources and package-lock.json give the same
// bytes: names depend on content alone, and nothing of the machine gets in.
import { build } from 'esbuild';
import { copyFile, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const dist = resolve(process.argv[2] ?? join(here, '../dist'));
const assets = join(dist, 'assets');

// graphiql/style.css holds Monaco's styles already; the ones that Monaco's modules import would double them.
const withoutMonacoStyles = {
  name: 'without-monaco-styles',
  setup({ onLoad }) {
    onLoad({ filter: /node_modules[\\/]monaco-editor[\\/].*\.css$/ }, () => ({ contents: '', loader: 'css' }));
  },
};

const common = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  metafile: true,
  outdir: assets,
  target: ['es2022'],
  legalComments: 'none', // all licences stand in licenses.txt
  define: { 'process.env.NODE_ENV': '"production"' },
  logLevel: 'warning',
};

await rm(dist, { recursive: true, force: true });
await mkdir(assets, { recursive: true });

const page = await build({
  ...common,
  entryPoints: { main: 'src/main.jsx' },
  format: 'esm',
  splitting: true,
  jsx: 'automatic',
  chunkNames: 'chunk-[hash]',
  loader: { '.graphql': 'text', '.ttf': 'dataurl' },
  plugins: [withoutMonacoStyles],
});
const workers = await build({
  ...common,
  entryPoints: {
    'editor.worker': 'monaco-editor/esm/vs/editor/editor.worker.js',
    'json.worker': 'monaco-editor/esm/vs/language/json/json.worker.js',
    'graphql.worker': 'monaco-graphql/esm/graphql.worker.js',
  },
  format: 'iife',
});

await copyFile(join(here, 'src/index.html'), join(dist, 'index.html'));
await copyFile(join(here, 'src/favicon.svg'), join(assets, 'favicon.svg'));
await writeFile(join(assets, 'licenses.txt'), await licenses([page, workers]));

// licenses returns the name, version and licence text of every package that is in the bundles.
async function licenses(results) {
  const folders = new Set();
  for (const input of results.flatMap((r) => Object.keys(r.metafile.inputs))) {
    const found = input.match(/^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/);
    if (found) folders.add(found[0]);
  }
  const parts = ['The files beside this one hold code of these packages.\n'];
  for (const folder of [...folders].sort()) {
    const { name, version, license } = JSON.parse(await readFile(join(here, folder, 'package.json'), 'utf8'));
    const file = (await readdir(join(here, folder))).sort().find((f) => /^licen[sc]e/i.test(f));
    const text = file ? (await readFile(join(here, folder, file), 'utf8')).trim() : `License: ${license}`;
    parts.push(`${'-'.repeat(80)}\n${name} ${version}\n\n${text.replaceAll('\r\n', '\n')}\n`);
  }
  return parts.join('\n');
}
