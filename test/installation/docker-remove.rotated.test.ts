// deploy/remove on a real engine removes all objects of an installation, with the unlabelled volumes of its tenants, and no
// objects of others.
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { ensureCompose } from '#scripts/compose.ts'
import { engineSocket, openScene, until } from '#test/support/docker.ts'
import { testEngine } from '#test/support/docker-platform.ts'

const run = promisify(execFile)
const project = new URL('../../', import.meta.url).pathname

t.test(
  "deploy/remove deletes unlabelled volumes with the name of the installation's tenants, and no others",
  async (t) => {
    await ensureCompose()
    const scene = openScene(t)
    const { host, rawDocker, labels, installation, stack, name, signal } = scene
    const foreign = [`tenantry-t_${'0'.repeat(20)}-data`, `x${name('data')}`]
    const directory = await mkdtemp(join(tmpdir(), 'tenantry-remove-'))
    const names = async () => (await rawDocker.listVolumes()).Volumes.map((volume) => volume.Name)
    t.teardown(async () => {
      for (const volume of [...foreign, name('theirs')]) await rawDocker.getVolume(volume).remove()
      await rm(directory, { recursive: true })
    })
    await host.createVolume({ name: name('files'), labels: { installation, stack } }, signal)
    await scene.run('runtime', { labels })
    for (const volume of [name('data'), ...foreign]) await rawDocker.createVolume({ Name: volume })
    await rawDocker.createVolume({
      Name: name('theirs'),
      Labels: { 'tenantry.installation': 'another', 'tenantry.stack': stack },
    })

    const [settings, compose] = [join(directory, 'settings'), join(directory, 'compose.yml')]
    await writeFile(
      settings,
      `TENANTRY_INSTALLATION=${installation}\nDOCKER_SOCKET=${engineSocket()}\nCOMPOSE_PROJECT_NAME=${installation}\n`,
    )
    await writeFile(compose, 'version: "3"\nservices: {nothing: {image: "debian:trixie-slim"}}\n')
    const { stdout } = await run(
      join(project, 'deploy/remove'),
      ['--destroy-all-data', '--settings', settings, '--compose-file', compose],
      {
        env: { ...process.env, DOCKER_HOST: testEngine() },
      },
    )
    t.match(stdout, `removed the installation ${installation}`)
    await until(async () => ((await names()).includes(name('data')) ? undefined : true))
    t.same(
      (await names()).filter((volume) => volume.includes(stack)).toSorted(),
      [name('theirs'), `x${name('data')}`].toSorted(),
    )
    t.ok((await names()).includes(foreign[0] ?? ''), 'the volume of a foreign stack stays')
  },
)
