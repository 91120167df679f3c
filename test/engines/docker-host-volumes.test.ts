// A real Engine's volumes must exist before their container and stay while they are used. Their size is measured, and files that
// Tenantry writes into them are readable only by their user.
import { randomInt } from 'node:crypto'
import t, { type Test } from 'tap'
import { dockerHost } from '#control-plane/engines/docker/docker-host.ts'
import { engineSocket, image, openScene, type Scene } from '#test/support/docker.ts'

t.test('a container with a missing volume is rejected, and creates no volume', async (t) => {
  const scene = openScene(t)
  const { host, rawDocker, owned, signal, name } = scene
  const spec = scene.container('worker', { volumes: [{ volume: name('gone'), path: '/data', readOnly: false }] })
  await t.rejects(host.createContainer(spec, signal), {
    code: 'VOLUME_MISSING',
    message: `Cannot create container ${spec.name}: the volume "${name('gone')}" does not exist.`,
  })
  t.same(await host.observe(owned, signal), { containers: [], networks: [], volumes: [], unlabelledVolumes: [] })
  await t.rejects(rawDocker.getVolume(name('gone')).inspect())
})

t.test('a volume in use is not removed', async (t) => {
  const scene = openScene(t)
  const { host, labels, owned, signal, name } = scene
  await host.createVolume({ name: name('data'), labels }, signal)
  await host.createContainer(
    scene.container('worker', { volumes: [{ volume: name('data'), path: '/data', readOnly: false }] }),
    signal,
  )
  await t.rejects(host.removeVolume(name('data'), owned, signal), {
    code: 'ENGINE_FAILED',
    message: `Cannot remove volume ${name('data')}: it is in use.`,
  })
  t.equal((await host.observe(owned, signal)).volumes.length, 1)
})

t.test('the host reports the size of each volume of a stack', async (t) => {
  const scene = openScene(t)
  const { host, labels, owned, signal, name } = scene
  await host.createVolume({ name: name('full'), labels }, signal)
  await host.createVolume({ name: name('empty'), labels }, signal)
  const size = randomInt(100_000, 200_000)
  await host.writeFiles(name('full'), image, '10001', { file: 'x'.repeat(size) }, labels, signal)
  const measured = await Promise.all(Array.from({ length: 5 }, () => host.volumeBytes(owned, signal)))
  for (const bytes of measured) t.same(bytes, { [name('full')]: size, [name('empty')]: 0 })
  const caller = new AbortController()
  const waiting = host.volumeBytes(owned, caller.signal)
  caller.abort(new Error('enough'))
  await t.rejects(waiting, { message: 'enough' })
  t.same(await host.volumeBytes({ ...owned, stack: 'region-x' }, signal), {})
})

t.test('the Engine measures for one client at a time, and the others wait', async (t) => {
  const scene = openScene(t)
  const { host, labels, owned, signal, name } = scene
  await host.createVolume({ name: name('full'), labels }, signal)
  await host.writeFiles(name('full'), image, '10001', { file: 'x'.repeat(10_000) }, labels, signal)
  const clients = Array.from({ length: 12 }, () => dockerHost({ host: `unix://${engineSocket()}` }))
  t.teardown(() => clients.map((client) => client.close()))
  for (const bytes of await Promise.all(clients.map((client) => client.volumeBytes(owned, signal))))
    t.same(bytes, { [name('full')]: 10_000 })
})

function secretsScene(t: Test): { scene: Scene; volume: string; read: () => Promise<string> } {
  const scene = openScene(t)
  const { host, signal } = scene
  const volume = scene.name('secrets')
  const read = async () => {
    const reader = await scene.run('reader', { volumes: [{ volume, path: '/run/secrets', readOnly: true }] })
    const list = [
      'sh',
      '-c',
      'stat -c "%a %u:%g %n" /run/secrets /run/secrets/*; tail -n +1 /run/secrets/*; touch /run/secrets/new 2>&1',
    ]
    const { stdout } = await host.exec(reader, list, { signal })
    await host.removeContainer(reader, scene.owned, signal)
    return stdout
  }
  return { scene, volume, read }
}

t.test('files in a volume are readable only by their user, and not writable', async (t) => {
  const { scene, volume, read } = secretsScene(t)
  const { host, rawDocker, labels, owned, signal } = scene
  await host.createVolume({ name: volume, labels }, signal)
  await host.writeFiles(volume, image, '10001', { password: 'first\n', 'tls.key': 'ключ\n' }, labels, signal)
  t.equal(
    await read(),
    [
      '500 10001:10001 /run/secrets',
      '400 10001:10001 /run/secrets/password',
      '400 10001:10001 /run/secrets/tls.key',
      '==> /run/secrets/password <==',
      'first',
      '',
      '==> /run/secrets/tls.key <==',
      'ключ',
      "touch: cannot touch '/run/secrets/new': Read-only file system",
      '',
    ].join('\n'),
  )
  t.same((await host.observe(owned, signal)).containers, [], 'the container that wrote them is removed')

  // An interrupted call leaves a container with this name behind.
  await host.createContainer(scene.container('secrets-files'), signal)
  await host.writeFiles(volume, image, '10001:10002', { password: 'second\n' }, labels, signal)
  t.equal(
    await read(),
    [
      '500 10001:10002 /run/secrets',
      '400 10001:10002 /run/secrets/password',
      'second',
      "touch: cannot touch '/run/secrets/new': Read-only file system",
      '',
    ].join('\n'),
    'the earlier files are removed',
  )
  t.same((await host.observe(owned, signal)).containers, [])
  t.same(
    (await rawDocker.getVolume(volume).inspect()).Labels['tenantry.service'],
    labels.service,
    'the labels of the volume are unchanged',
  )
})

t.test('files in use can be replaced by the same names, but not removed', async (t) => {
  const { scene, volume } = secretsScene(t)
  const { host, labels, signal } = scene
  await host.createVolume({ name: volume, labels }, signal)
  await host.writeFiles(volume, image, '10001', { a: 'old', b: 'old' }, labels, signal)
  const reader = await scene.run('reader', { volumes: [{ volume, path: '/run/secrets', readOnly: true }] })
  const read = async () => (await host.exec(reader, ['sh', '-c', 'cat /run/secrets/*'], { signal })).stdout
  await host.writeFiles(volume, image, '10001', { a: 'new', b: 'new' }, labels, signal)
  t.equal(await read(), 'newnew')
  await t.rejects(host.writeFiles(volume, image, '10001', { a: 'newer' }, labels, signal), {
    code: 'ENGINE_FAILED',
    message: /it is in use/,
  })
  t.equal(await read(), 'newnew')
})

t.test('a file name that leaves the volume is rejected', async (t) => {
  const { scene, volume } = secretsScene(t)
  const { host, labels, owned, signal } = scene
  await t.rejects(host.writeFiles(volume, image, '10001', { a: 'b' }, labels, signal), { code: 'VOLUME_MISSING' })
  await host.createVolume({ name: volume, labels }, signal)
  for (const file of ['../a', '..', '.', 'a/b', '/a', '', '.a', 'a\n']) {
    await t.rejects(host.writeFiles(volume, image, '10001', { [file]: 'b' }, labels, signal), RangeError, file)
  }
  await t.rejects(host.writeFiles(volume, image, 'postgres', { a: 'b' }, labels, signal), RangeError)
  t.same(await host.volumeBytes(owned, signal), { [volume]: 0 })
})
