// Volumes on a real Engine: needed before their container, kept while they are used, measured, and written files that their
// user alone may read.
import { randomInt } from 'node:crypto'
import t, { type Test } from 'tap'
import { image, openScene, type Scene } from '#test/support/docker.ts'

t.test('a container is refused while one of its volumes is missing, and makes none', async (t) => {
  const scene = openScene(t)
  const { host, unguarded, owned, signal, name } = scene
  const spec = scene.container('worker', { volumes: [{ volume: name('gone'), path: '/data', readOnly: false }] })
  await t.rejects(host.createContainer(spec, signal), {
    code: 'VOLUME_MISSING',
    message: `cannot create container ${spec.name}: volume ${name('gone')} is not there`,
  })
  t.same(await host.observe(owned, signal), { containers: [], networks: [], volumes: [], unlabelledVolumes: [] })
  await t.rejects(unguarded.getVolume(name('gone')).inspect())
})

t.test('a volume that is used is not removed', async (t) => {
  const scene = openScene(t)
  const { host, labels, owned, signal, name } = scene
  await host.createVolume({ name: name('data'), labels }, signal)
  await host.createContainer(
    scene.container('worker', { volumes: [{ volume: name('data'), path: '/data', readOnly: false }] }),
    signal,
  )
  await t.rejects(host.removeVolume(name('data'), owned, signal), {
    code: 'ENGINE_FAILED',
    message: `cannot remove volume ${name('data')}: it is in use`,
  })
  t.equal((await host.observe(owned, signal)).volumes.length, 1)
})

t.test('volumes are measured', async (t) => {
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

t.test("files in a volume are its user's alone to read, and nobody's to write", async (t) => {
  const { scene, volume, read } = secretsScene(t)
  const { host, unguarded, labels, owned, signal } = scene
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
  t.same((await host.observe(owned, signal)).containers, [], 'what wrote them is gone')

  // What an interrupted call leaves behind, under a name that is known.
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
    'files of before are gone',
  )
  t.same((await host.observe(owned, signal)).containers, [])
  t.same(
    (await unguarded.getVolume(volume).inspect()).Labels['tenantry.service'],
    labels.service,
    'and the volume is labelled as it was',
  )
})

t.test('files are written again under a container that uses them, but other files are not taken from it', async (t) => {
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

t.test('no file goes elsewhere than into its volume', async (t) => {
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
