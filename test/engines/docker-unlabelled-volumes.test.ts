// Docker itself creates an unlabelled volume for a container whose volume is missing. The host distinguishes such volumes from its
// own and from foreign ones, never uses them, and removes empty ones, directly and through docker-proxy.
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { dockerHost, type DockerHost } from '#control-plane/engines/docker/docker-host.ts'
import { openProxy } from '#test/docker-proxy/support/proxy.ts'
import { engineSocket, image, openScene, type Scene } from '#test/support/docker.ts'
import { openDouble } from '#test/support/engine-double.ts'

/** Creates a container whose volume does not exist, so that Docker creates the volume without labels. */
async function forceVolume({ rawDocker, installation }: Scene, volume: string, command = ['true']) {
  const container = await rawDocker.createContainer({
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
  const { rawDocker, owned, labels, name, signal } = scene
  const [empty, full, foreign] = [name('empty'), name('full'), name('foreign')]
  const holder = await forceVolume(scene, empty)
  t.equal((await rawDocker.getVolume(empty).inspect()).Labels, null, 'Docker sets no label')
  const writer = await forceVolume(scene, full, ['sh', '-c', 'echo precious > /var/lib/data/file'])
  await writer.start()
  await writer.wait()
  await rawDocker.createVolume({ Name: foreign, Labels: { owner: 'another-program' } })
  t.teardown(async () => {
    for (const volume of [full, foreign]) await rawDocker.getVolume(volume).remove()
  })

  t.same((await host.observe(owned, signal)).unlabelledVolumes.toSorted(), [empty, full])
  t.same((await host.observe(owned, signal)).volumes, [])
  await t.rejects(host.createContainer(mounting(scene, 'empty'), signal), {
    code: 'VOLUME_MISSING',
    message: /has created an unlabelled one of that name/,
  })
  await t.rejects(host.addFiles(empty, image, '10001:10001', { initialize: 'x' }, labels, signal), {
    code: 'VOLUME_MISSING',
  })
  await t.rejects(host.createVolume({ name: empty, labels }, signal), { code: 'FOREIGN_OBJECT', message: /is in use/ })
  await holder.remove()
  await host.createVolume({ name: empty, labels }, signal)
  t.match(
    (await rawDocker.getVolume(empty).inspect()).Labels,
    { 'tenantry.stack': owned.stack },
    'a labelled volume replaces an empty unlabelled one',
  )
  await host.removeVolume(empty, owned, signal)

  await forceVolume(scene, empty).then((container) => container.remove())
  await host.removeUnlabelledVolume(empty, signal)
  await t.rejects(
    rawDocker.getVolume(empty).inspect(),
    { message: /no such volume/i },
    'an empty unlabelled volume is removed',
  )
  await host.removeUnlabelledVolume(empty, signal)

  await writer.remove()
  for (const volume of [full, foreign]) {
    await t.rejects(host.createVolume({ name: volume, labels }, signal), { code: 'FOREIGN_OBJECT' })
    await t.rejects(host.removeUnlabelledVolume(volume, signal), { code: 'FOREIGN_OBJECT' })
    await rawDocker.getVolume(volume).inspect()
  }
}

t.test('the engine host detects, replaces and removes unlabelled volumes', async (t) => {
  const scene = openScene(t)
  await checkUnlabelled(t, scene, scene.host)
})

t.test('the engine host does so through docker-proxy', async (t) => {
  const scene = await openProxy(t)
  await checkUnlabelled(t, scene, scene.proxy)
})

t.test('a volume that is removed between its check and the creation of its container is an error', async (t) => {
  const scene = openScene(t)
  const { rawDocker, labels, owned, name, signal } = scene
  const volume = name('data')
  let mayRemove = true
  const engine = dockerHost({
    host: await openDouble(t, (incoming, response) => {
      const pass = () => {
        const { method, url: path, headers } = incoming
        const call = request({ socketPath: engineSocket(), method, path, headers, agent: false }, (upstream) => {
          response.writeHead(upstream.statusCode ?? 502, upstream.headers)
          upstream.pipe(response)
        })
        incoming.pipe(call)
      }
      if (mayRemove && /\/containers\/create/.test(incoming.url ?? ''))
        void rawDocker.getVolume(volume).remove().then(pass)
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
    t.same(
      (await engine.observe(owned, signal)).containers,
      [],
      `${what}: no container uses the volume that Docker created`,
    )
    t.same((await engine.observe(owned, signal)).unlabelledVolumes, [volume])
  }
  mayRemove = false
  await engine.removeUnlabelledVolume(volume, signal)
})

t.test('files are added to a volume, and its other files stay', async (t) => {
  const { host, rawDocker, labels, name, signal, run } = openScene(t)
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
  await rawDocker.getContainer(worker).remove({ force: true })
})
