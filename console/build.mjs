// Bundles the web consoles into `console/built/`, that of developers into `developer/` in it: a page, and scripts and styles whose
// names contain the hash of their content, each also compressed. It is plain JavaScript, because `scripts/setup.mjs` runs it.
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const part = dirname(fileURLToPath(import.meta.url))
const target = join(part, 'built')
const aside = join(part, `built.${process.pid}`)

/** Bundles the console of an entry. Returns its files by their names. @param base the path of its files as the page has it */
async function bundle(entryPoint, base) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: part,
    entryPoints: { app: entryPoint },
    outdir: 'built',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    minify: true,
    write: false,
    metafile: true,
    format: 'esm',
    target: ['chrome123', 'firefox120', 'safari17.5'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    logLevel: 'error',
  })
  const entry = Object.entries(metafile.outputs).find(([, output]) => output.entryPoint === entryPoint)
  if (entry === undefined) throw new Error('The bundle of the console has no entry.')
  const nameOf = (path) => relative('built', path)
  const [script, { cssBundle }] = entry
  const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Tenantry</title>
<link rel="stylesheet" href="${base}${nameOf(cssBundle)}">
<script type="module" src="${base}${nameOf(script)}"></script>
</head>
<body><div id="app"><p class="boot">Loading the console …</p></div><noscript>The console needs JavaScript.</noscript></body>
</html>
`
  return [
    ['index.html', Buffer.from(page)],
    ...outputFiles.map(({ path, contents }) => [relative(target, path), Buffer.from(contents)]),
  ]
}

async function write(directory, files) {
  await mkdir(directory)
  for (const [name, content] of files) {
    const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }
    await writeFile(join(directory, name), content)
    await writeFile(join(directory, `${name}.gz`), gzipSync(content, { level: 9 }))
    await writeFile(join(directory, `${name}.br`), brotliCompressSync(content, brotli))
  }
}

await rm(aside, { recursive: true, force: true })
await write(aside, await bundle('src/main.tsx', '/console/'))
// A tenant may be at any path, so the page of its console names its files relative to its own address.
await write(join(aside, 'developer'), await bundle('src/developer/main.tsx', 'console/'))
await rm(target, { recursive: true, force: true })
await rename(aside, target)
