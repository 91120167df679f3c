// Bundles a part for its image: one file without types for each entry, which contains all its modules. A process starts from
// it in a third of the time that hundreds of files take, and with less memory.
import { readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { build } from 'esbuild'
import type { Entry } from './context.ts'

/** Defines `require` for packages that are not ES modules. */
const requireHere =
  "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);"

/**
 * Returns the bundled entries with their paths below the project, as `.js`, and the part's `package.json`. Names are
 * preserved, so that stack traces are readable.
 * @param part directory of a workspace
 * @param entries files that processes are started with, below `part`
 * @throws Error when a module is not found or cannot be parsed
 */
export async function bundleOf(project: string, part: string, entries: readonly string[]): Promise<Entry[]> {
  // Each entry is bundled separately, because it may run where it can't read the files next to it.
  const bundles = await Promise.all(entries.map((entry) => bundle(project, part, entry)))
  const code = new Map(bundles.flat().map((file) => [file.path, file]))
  return [
    ...code.values(),
    {
      path: join('app', part, 'package.json'),
      content: await manifestOf(join(project, part, 'package.json')),
      isExecutable: false,
    },
  ]
}

/** Bundles one entry. Modules that are imported on demand are separate chunks, so that other starts do not load them. */
async function bundle(project: string, part: string, entry: string): Promise<Entry[]> {
  const { outputFiles } = await build({
    absWorkingDir: project,
    entryPoints: [join(part, entry)],
    outbase: '.',
    outdir: 'app',
    bundle: true,
    splitting: true,
    chunkNames: join(part, 'chunks/[name]-[hash]'),
    write: false,
    platform: 'node',
    format: 'esm',
    target: `node${process.versions.node}`,
    keepNames: true,
    banner: { js: requireHere },
    legalComments: 'inline',
    // Optional native code.
    external: ['pg-native'],
    logLevel: 'silent',
  })
  return outputFiles.map(({ path, contents }) => ({
    path: relative(project, path),
    content: Buffer.from(contents),
    isExecutable: false,
  }))
}

/** Returns the fields of the source's `package.json` that a process reads when it runs. */
async function manifestOf(file: string): Promise<Buffer> {
  const { name, version, license, type, imports } = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>
  return Buffer.from(`${JSON.stringify({ name, version, license, type, imports }).replaceAll('.ts"', '.js"')}\n`)
}
