// The images and the contents of their build contexts.
import { dirname, join, relative } from 'node:path'
import { bundleOf } from './bundle.ts'
import { entriesOf, type Entry } from './context.ts'
import { productionPackages } from './packages.ts'

export const imageNames = [
  'postgres',
  'tenant-runtime',
  'gateway',
  'control-plane',
  'caddy',
  'cluster-member',
  'etcd',
] as const
export type ImageName = (typeof imageNames)[number]

export const imageTitles: Record<ImageName, string> = {
  postgres: 'Tenantry: Postgres 17',
  'tenant-runtime': 'Tenantry: tenant runtime',
  gateway: 'Tenantry: gateway',
  'control-plane': 'Tenantry: control plane',
  caddy: 'Tenantry: Caddy',
  'cluster-member': 'Tenantry: cluster member with Postgres 17 and Patroni',
  etcd: 'Tenantry: etcd',
}

const project = dirname(import.meta.dirname)

/** Packages of the control plane that its image does not need: those of the `prisma` command. */
const unusedInContainers = ['prisma']

/**
 * Matches files of packages that images do not need: tests, hidden files, types, source maps and texts; native code; Prisma
 * for databases other than Postgres; weights of fonts that invoices do not use, and pictures of fonts.
 */
const unwanted = new RegExp(
  [
    /^(?:tests?|benchmarks?|examples?|prebuilds)\//,
    /(?:^|\/)\./,
    /\.test\.[cm]?js$/,
    /\.(?:map|markdown|md|mts|cts|ts)$/,
    /query_compiler_\w+\.(?:cockroachdb|mysql|sqlite|sqlserver)\./,
    /(?:^|\/)NotoSans[A-Za-z]+(?:-|_\d00)(?!Regular|Bold)\w+\.[ot]tf$/,
    /\.ttf\.png$/,
  ]
    .map(({ source }) => source)
    .join('|'),
)

/** Returns the build context of an image. @throws Error if a package is not installed or the database client is not generated */
export async function contextOf(name: ImageName): Promise<Entry[]> {
  switch (name) {
    case 'postgres':
    case 'caddy':
    case 'cluster-member':
      return entriesOf(join(project, 'images', name), '')
    case 'etcd':
      return (
        await Promise.all([
          entriesOf(join(project, 'images', name), ''),
          entriesOf(join(project, 'images/cluster-member/is-ok.sh'), 'is-ok.sh'),
        ])
      ).flat()
    case 'tenant-runtime':
      return nodeContext(
        name,
        Promise.all([
          bundleOf(project, name, ['src/main.ts', 'src/move-blobs.ts', 'src/functions/executor/child.ts']),
          entriesOf(join(project, developerConsole), join('app', developerConsole)),
        ]).then((entries) => entries.flat()),
      )
    case 'gateway':
      return nodeContext(name, bundleOf(project, name, ['src/main.ts']))
    case 'control-plane':
      return nodeContext(
        name,
        sourceOf(name, [
          'console/built',
          'docker-proxy/src',
          'prisma/schema.prisma',
          'prisma/migrations',
          'prisma/client',
          'tenant-runtime/migrations',
        ]),
      )
  }
}

/** The files of the developers' console, which a runtime serves. */
const developerConsole = 'console/built/developer'

async function nodeContext(part: string, code: Promise<Entry[]>): Promise<Entry[]> {
  const entries = await Promise.all([
    entriesOf(join(project, 'images', part), ''),
    entriesOf(join(project, 'images/node-service/is-live.sh'), 'is-live'),
    nodeBinary(),
    code,
  ])
  return entries.flat()
}

/** Returns the source of a part with its packages. `also` are the other files and folders that it reads. */
async function sourceOf(part: string, also: readonly string[]): Promise<Entry[]> {
  const packages = await productionPackages(project, part, unusedInContainers)
  const source = [...['contract', part].flatMap((member) => [`${member}/package.json`, `${member}/src`]), ...also]
  const entries = await Promise.all([
    ...source.map((path) => entriesOf(join(project, path), join('app', path))),
    ...packages.map((path) => entriesOf(join(project, path), inContext(path), (below) => !unwanted.test(below))),
  ])
  return [
    ...entries.flat(),
    { path: 'app/package.json', content: Buffer.from('{"private":true,"type":"module"}\n'), isExecutable: false },
    { path: 'node_modules/@tenantry/contract', target: relative('node_modules/@tenantry', 'contract') },
  ]
}

/** Packages of the project rarely change and form a separate layer. Packages of a part are next to its source. */
function inContext(path: string): string {
  return path.startsWith('node_modules/') ? path : join('app', path)
}

let binary: Promise<Entry[]> | undefined

/** Returns the Node binary that also runs the project. It has about 150 MB, so it is read once for all images. */
function nodeBinary(): Promise<Entry[]> {
  binary ??= entriesOf(join(project, 'node_modules/node/bin/node'), 'node')
  return binary
}
