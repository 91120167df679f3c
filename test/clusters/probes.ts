// Sessions in the containers of a cluster's members that try to write there all the time, whatever the routers do.
import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { clusterMembers } from '#control-plane/stacks/cluster-services.ts'
import { testEngine } from '#test/support/docker-platform.ts'

/** A write that a member acknowledged; times in milliseconds of this machine's clock. */
interface Write {
  member: string
  timeline: number
  sentAt: number
  acknowledgedAt: number
}

/** Two writes that were acknowledged on two timelines at the same time. */
interface Overlap {
  earlier: Write
  later: Write
}

const statements = [
  'create table if not exists probes (at timestamptz)',
  'insert into probes values (now()) returning left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)',
]
const psql = 'psql -X -q -A -t -h /run/postgresql -U postgres -d postgres -v ON_ERROR_STOP=1'

// A replica rejects the statements. A primary without a replica that confirms the commit never ends them.
const probe = `
while true; do
  from=$(date +%s%3N)
  if timeline=$(${psql} ${statements.map((statement) => `-c "${statement}"`).join(' ')} 2> /dev/null); then
    echo "$from $(date +%s%3N) $timeline"
  fi
  sleep 0.4
done
`

/** Starts a session in each member, and again when its container was replaced. */
export function startProbes(containerOf: (service: string) => Promise<string>) {
  const writes: Write[] = []
  const children = new Set<ChildProcess>()
  let isStopped = false

  const follow = async (member: string): Promise<void> => {
    while (!isStopped) {
      const container = await containerOf(member).catch(() => undefined)
      if (container !== undefined) await probeIn(member, container)
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
  }

  const probeIn = (member: string, container: string) =>
    new Promise<void>((resolve) => {
      const child = spawn('docker', ['-H', testEngine(), 'exec', container, 'bash', '-c', probe], {
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      children.add(child)
      createInterface({ input: child.stdout }).on('line', (line) => {
        const [sentAt, acknowledgedAt, timeline = ''] = line.split(' ')
        writes.push({
          member,
          timeline: Number.parseInt(timeline, 16),
          sentAt: Number(sentAt),
          acknowledgedAt: Number(acknowledgedAt),
        })
      })
      child.once('close', () => {
        children.delete(child)
        resolve()
      })
    })

  const followed = Promise.all(clusterMembers.map(follow))
  return {
    /** Ends the sessions. `overlaps` are the writes that were sent after a later primary had acknowledged one. */
    async stop(): Promise<{ written: number; overlaps: Overlap[] }> {
      isStopped = true
      for (const child of children) child.kill('SIGKILL')
      await followed
      return { written: writes.length, overlaps: overlapsOf(writes) }
    },
  }
}

function overlapsOf(writes: readonly Write[]): Overlap[] {
  const firstOf = new Map<number, Write>()
  for (const write of writes) {
    const known = firstOf.get(write.timeline)
    if (known === undefined || write.acknowledgedAt < known.acknowledgedAt) firstOf.set(write.timeline, write)
  }
  return writes.flatMap((earlier) =>
    [...firstOf.values()]
      .filter((later) => later.timeline > earlier.timeline && later.acknowledgedAt < earlier.sentAt)
      .map((later) => ({ earlier, later })),
  )
}
