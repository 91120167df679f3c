// Finds the packages of `node_modules` that a part needs when it runs: its dependencies, their dependencies, and so on.
import { existsSync } from 'node:fs'
import { readFile, realpath } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'

const Names = Type.Record(Type.String(), Type.Unknown())
const Manifest = Type.Object({
  dependencies: Type.Optional(Names),
  peerDependencies: Type.Optional(Names),
  peerDependenciesMeta: Type.Optional(
    Type.Record(Type.String(), Type.Object({ optional: Type.Optional(Type.Boolean()) })),
  ),
})

/**
 * Returns the directories of packages, relative to the project and sorted. Optional dependencies are omitted: they are native
 * code that their packages do not require.
 * @param part directory of a workspace
 * @param without names that are not followed
 * @throws Error that names a package that is not installed
 */
export async function productionPackages(
  project: string,
  part: string,
  without: readonly string[] = [],
): Promise<string[]> {
  const found = new Set<string>()
  const visited = new Set<string>()
  const visit = async (directory: string): Promise<void> => {
    if (visited.has(directory)) return
    visited.add(directory)
    const path = relative(project, directory)
    if (path.split(sep).includes('node_modules')) found.add(path)
    for (const name of await namesNeededBy(directory)) {
      if (!without.includes(name) && !name.startsWith('@types/')) await visit(await locate(project, directory, name))
    }
  }
  await visit(join(project, part))
  return [...found].sort()
}

async function namesNeededBy(directory: string): Promise<string[]> {
  const file = join(directory, 'package.json')
  const manifest: unknown = JSON.parse(await readFile(file, 'utf8'))
  if (!Value.Check(Manifest, manifest)) throw new Error(`${file} is not a valid package manifest.`)
  const { dependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} } = manifest
  return [
    ...Object.keys(dependencies),
    ...Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true),
  ]
}

/** Finds a package as Node does: upwards from the package that imports it. */
async function locate(project: string, from: string, name: string): Promise<string> {
  for (let at = from; at.startsWith(project); at = dirname(at)) {
    const directory = join(at, 'node_modules', name)
    if (existsSync(join(directory, 'package.json'))) return realpath(directory)
  }
  throw new Error(`${name}, which ${relative(project, from)} needs, is not installed.`)
}
