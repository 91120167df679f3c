// Three hosts on this machine, joined by Docker Swarm, and an S3 server, on which a platform can be set up and lose a host as
// docs/operate/several-hosts.md describes: `npm run three-hosts`, as root on Linux.
import { createInterface } from 'node:readline/promises'
import { join } from 'node:path'
import { composeCommand } from '#scripts/compose.ts'
import { openEngineWithImages } from '#scripts/engine-with-images.ts'
import { ensureSwift } from '#scripts/swift.ts'
import { domain, openStack, type Stack } from '#test/swarm/stack.ts'

type Host = Stack['lab']['hosts'][number]

const verbs: Record<string, (host: Host) => Promise<unknown>> = {
  kill: async (host) => host.kill(),
  start: (host) => host.start(),
  cut: (host) => host.connect(false),
  connect: (host) => host.connect(true),
}

/** Returns the commands of the guide, with the values of these hosts. */
function guide({ lab, files, directory, setupArguments }: Stack, compose: string): string {
  const on = ({ socket }: Host) => `DOCKER_HOST=unix://${socket}`
  const [first, second] = lab.hosts
  const readKey = ({ socket }: Host) =>
    `DOCKER_HOST=unix://${socket} docker exec tenantry-control-plane cat /var/lib/tenantry/platform-key 2>/dev/null`
  const starts = lab.hosts.map((host) => `(cd ${join(files, 'hosts', host.id)} && ${on(host)} ${compose} up --detach)`)
  const options = setupArguments.join(' ').replaceAll(' --', ' \\\n  --')
  return `The hosts are joined, and have the images. In another terminal, from the project's folder, as root:

# Write the files
${on(first)} deploy/setup --swarm \\
  ${options}

# Start each host
${starts.join('\n')}

# Read the platform key from the control plane that writes it, which takes a minute, and wait until the region is ready
until KEY=$(${readKey(first)} || ${readKey(second)}); do sleep 2; done
curl -H "Authorization: Bearer $KEY" http://${first.address}:4400/v1/regions

# Run the demo for each isolation model. The console is at http://${first.address}:4400
echo '${first.address} ${domain}' >> /etc/hosts
export NODE_EXTRA_CA_CERTS=${join(files, 'authorities/clients.pem')}
echo "$KEY" > ${join(directory, 'key')}
npm run demo -- --control-url http://${first.address}:4400 --key-file ${join(directory, 'key')} --plan Pro --isolation schema-per-tenant
npm run demo -- --control-url http://${first.address}:4400 --key-file ${join(directory, 'key')} --plan Pro --isolation database-per-tenant
npm run demo -- --control-url http://${first.address}:4400 --key-file ${join(directory, 'key')} --plan Pro --isolation cluster-per-tenant

Here: "kill host-1" ends all its processes, as the loss of power does, "start host-1" starts it again, "cut host-1" takes its network away,
"connect host-1" returns it. "end" removes everything but the line in /etc/hosts.`
}

/** Carries out commands until the input ends, or the signal aborts. */
async function takeCommands({ lab }: Stack, signal: AbortSignal): Promise<void> {
  const lines = createInterface({ input: process.stdin, output: process.stdout, prompt: '> ', signal })
  lines.on('SIGINT', () => lines.close())
  let isOpen = !signal.aborted
  lines.once('close', () => {
    isOpen = false
  })
  const prompt = () => {
    if (isOpen) lines.prompt()
  }
  prompt()
  for await (const line of lines) {
    const [verb = '', id = ''] = line.trim().split(/\s+/)
    if (verb === 'end') break
    const [work, host] = [verbs[verb], lab.hosts.find((one) => one.id === id)]
    if (work === undefined || host === undefined)
      console.log(
        `Unknown command ${JSON.stringify(line)}. Commands: ${Object.keys(verbs).join(', ')} with host-1, host-2 or host-3; end.`,
      )
    else await work(host).then(() => console.log('done'), console.error)
    prompt()
  }
  lines.close()
}

const teardowns: (() => unknown)[] = []
const end = new AbortController()
// A signal during the start ends the hosts once they have started.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => end.abort())
await ensureSwift()
const engine = await openEngineWithImages(console.log)
try {
  const stack = await openStack({ teardown: (work: () => unknown) => void teardowns.push(work) })
  console.log(guide(stack, await composeCommand()))
  await takeCommands(stack, end.signal)
} finally {
  for (const work of teardowns.toReversed()) await work()
  await engine.stop()
}
