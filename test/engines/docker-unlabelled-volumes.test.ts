// Volumes that Docker makes by itself, for a container that names one which is gone: they are told apart from ours and from
// strangers', never used, and removed where they hold nothing; through docker-proxy, too.
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { dockerHost, type DockerHost } from '#control-plane/engines/docker/docker-host.ts'
import { openProxy } from '#test/docker-proxy/support/proxy.ts'
import { engineSocket, image, openScene, type Scene } from '#test/support/docker.ts'
import { openDouble } from '#test/support/engine-double.ts'

/** A container of somebody's whose volume is not there. */
async function forceVolume({ unguarded, installation }: Scene, volume: string, command = ['true']) {
  const container = await unguarded.createContainer({
    Image: image,
    Cmd: command,
    Labels: { 'tenantry.installation': installation },
    HostConfig: { NetworkMode: 'none', Mounts: [{ Type: 'volume', Source: volume, Target: '/var/lib/data' }] },
  })
  return container
}

const mounting = (scene: Scene, volume: string) =>
  scene.container('worker', { volumes: [{ volume: scene.name(volume), path: '/var/lib/data', readOnly: false }] })

async function checkUnlabelled(t: Test, scene: Scene, host: DockerHost): Promise<void> {
  const { unguarded, owned, labels, name, signal } = scene
  const [empty, full, theirs] = [name('empty'), name('full'), name('theirs')]
  const holder = await forceVolume(scene, empty)
  t.equal((await unguarded.getVolume(empty).inspect()).Labels, null, 'Docker gave it no label')
  const writer = await forceVolume(scene, full, ['sh', '-c', 'echo precious > /var/lib/data/file'])
  await writer.start()
  await writer.wait()
  await unguarded.createVolume({ Name: theirs, Labels: { owner: 'somebody' } })
  t.teardown(async () => {
    for (const volume of [full, theirs]) await unguarded.getVolume(volume).remove()
  })

  t.same((await host.observe(owned, signal)).unlabelledVolumes.toSorted(), [empty, full])
  t.same((await host.observe(owned, signal)).volumes, [])
  await t.rejects(host.createContainer(mounting(scene, 'empty'), signal), {
    code: 'VOLUME_MISSING',
    message: /unlabelled one in its place/,
  })
  await t.rejects(host.addFiles(empty, image, '10001:10001', { initialize: 'x' }, labels, signal), {
    code: 'VOLUME_MISSING',
  })
  await t.rejects(host.createVolume({ name: empty, labels }, signal), { code: 'FOREIGN_OBJECT', message: /is in use/ })
  await holder.remove()
  await host.createVolume({ name: empty, labels }, signal)
  t.match(
    (await unguarded.getVolume(empty).inspect()).Labels,
    { 'tenantry.stack': owned.stack },
    'an empty one is replaced by ours',
  )
  await host.removeVolume(empty, owned, signal)

  await forceVolume(scene, empty).then((container) => container.remove())
  await host.removeUnlabelledVolume(empty, signal)
  await t.rejects(unguarded.getVolume(empty).inspect(), { message: /no such volume/i }, 'or removed')
  await host.removeUnlabelledVolume(empty, signal)

  await writer.remove()
  for (const volume of [full, theirs]) {
    await t.rejects(host.createVolume({ name: volume, labels }, signal), { code: 'FOREIGN_OBJECT' })
    await t.rejects(host.removeUnlabelledVolume(volume, signal), { code: 'FOREIGN_OBJECT' })
    await unguarded.getVolume(volume).inspect()
  }
}

t.test('a volume without a label, straight at the engine', async (t) => {
  const scene = openScene(t)
  await checkUnlabelled(t, scene, scene.host)
})

t.test('a volume without a label, through docker-proxy', async (t) => {
  const scene = await openProxy(t)
  await checkUnlabelled(t, scene, scene.proxy)
})

t.test('a volume that goes away between the look for it and the creation of its container', async (t) => {
  const scene = openScene(t)
  const { unguarded, labels, owned, name, signal } = scene
  const volume = name('data')
  let mayRemove = true
  const engine = dockerHost({
    host: await openDouble(t, (incoming, response) => {
      const pass = () => {
        const { method, url: path, headers } = incoming
        const call = request({ socketPath: engineSocket(), method, path, headers, agent: false }, (given) => {
          response.writeHead(given.statusCode ?? 502, given.headers)
          given.pipe(response)
        })
        incoming.pipe(call)
      }
      if (mayRemove && /\/containers\/create/.test(incoming.url ?? ''))
        void unguarded.getVolume(volume).remove().then(pass)
      else pass()
    }),
  })
  t.teardown(() => engine.close())

  for (const [what, act] of [
    ['a container', () => engine.createContainer(mounting(scene, 'data'), signal)],
    ['files', () => engine.addFiles(volume, image, '10001:10001', { initialize: volume }, labels, signal)],
    ['secrets', () => engine.writeFiles(volume, image, '10001:10001', { secret: 'x' }, labels, signal)],
  ] as const) {
    mayRemove = false
    await engine.createVolume({ name: volume, labels }, signal)
    mayRemove = true
    await t.rejects(act(), { code: 'VOLUME_MISSING' }, what)
    t.same((await engine.observe(owned, signal)).containers, [], `${what}: no container is left on what Docker made`)
    t.same((await engine.observe(owned, signal)).unlabelledVolumes, [volume])
  }
  mayRemove = false
  await engine.removeUnlabelledVolume(volume, signal)
})

t.test('files are added to a volume, and what it holds stays', async (t) => {
  const { host, unguarded, labels, name, signal, run } = openScene(t)
  await host.createVolume({ name: name('data'), labels }, signal)
  await host.addFiles(name('data'), image, '10001:10001', { first: '1' }, labels, signal)
  await host.addFiles(name('data'), image, '10001:10001', { second: '2' }, labels, signal)
  const worker = await run('worker', { volumes: [{ volume: name('data'), path: '/var/lib/data', readOnly: false }] })
  const { stdout } = await host.exec(
    worker,
    ['sh', '-c', 'cd /var/lib/data && stat -c "%n %a %u:%g" . * && cat first second'],
    { signal },
  )
  t.equal(stdout, '. 700 10001:10001\nfirst 400 10001:10001\nsecond 400 10001:10001\n12')
  await unguarded.getContainer(worker).remove({ force: true })
})
