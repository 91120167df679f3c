// A host of a region: what it has, what tenants reserve, and what is really free, with the age of the measurement.
import type { ComponentChildren } from 'preact'
import type { Host } from '../api/types.ts'
import { exactBytes, percentOf, shortBytes, wholeNumber } from '../format/numbers.ts'
import { Age, Badge, Facts, Meter } from '../parts/basics.tsx'
import { Empty, Notice } from '../parts/feedback.tsx'

const stateKinds = { reachable: 'good', unreachable: 'bad', unknown: 'quiet' } as const

const useKinds = { active: 'good', draining: 'warn', lost: 'bad' } as const

/** Shows a host of a region. */
export function HostView({ host }: { host: Host }) {
  const { cpu_millis: cpu, memory_bytes: memory, disk_bytes: disk } = host
  return (
    <>
      <Facts
        facts={[
          [
            'Host',
            <>
              {isOneOfSeveral(host) && <code>{host.id}</code>} {host.name === null ? null : <code>{host.name}</code>}{' '}
              <Badge text={host.state} kind={stateKinds[host.state]} />
              {host.use !== 'active' && <Badge text={host.use} kind={useKinds[host.use]} />}
            </>,
          ],
          ['Measured', host.last_seen_at === null ? <span class="dim">never</span> : <Age at={host.last_seen_at} />],
          ['Tenants', wholeNumber(host.tenants.total)],
          ['With their own services', wholeNumber(host.tenants.dedicated)],
        ]}
      />
      {host.error !== null && (
        <Notice kind="bad">
          <strong>The host does not respond.</strong> {host.error}{' '}
          {host.last_seen_at !== null && 'The figures are those of the last measurement.'}
        </Notice>
      )}
      {host.last_seen_at === null ? (
        <Empty title="The host was not measured yet.">
          The control plane that leads measures each host within seconds of its start.
        </Empty>
      ) : (
        <div class="resources">
          <Resource title="CPU" free={cpu.free} total={cpu.total} text={cores} exact={coresExact}>
            {reserved(cores(cpu.reserved_by_tenants), cpu.reserved_by_tenants, cpu.total)} by tenants,{' '}
            {cores(cpu.reserved_by_platform)} by the platform
          </Resource>
          <Resource title="Memory" free={memory.free} total={memory.total} text={shortBytes} exact={exactBytes}>
            {reserved(shortBytes(memory.reserved_by_tenants), memory.reserved_by_tenants, memory.total)} by tenants,{' '}
            {shortBytes(memory.reserved_by_platform)} by the platform
          </Resource>
          <Resource title="Disk" free={disk.free} total={disk.total} text={shortBytes} exact={exactBytes}>
            {reserved(shortBytes(disk.reserved_by_tenants), disk.reserved_by_tenants, disk.total)} by quotas of tenants
            {disk.tenants_without_quota > 0 && `, without ${wholeNumber(disk.tenants_without_quota)} that have none`}
          </Resource>
        </div>
      )}
      {host.warnings.length > 0 && (
        <ul class="host-notes" aria-label="Limits of this host">
          {host.warnings.map((warning) => (
            <li key={warning}>{warning}</li>
          ))}
        </ul>
      )}
    </>
  )
}

/** Whether the region has several hosts. */
function isOneOfSeveral({ id, region }: Host): boolean {
  return id !== region
}

interface ResourceProps {
  title: string
  free: number | null
  total: number | null
  /** Returns the short text of an amount. */
  text: (amount: number) => string
  /** Returns the text with every digit. */
  exact: (amount: number) => string
  /** What is reserved. */
  children: ComponentChildren
}

/** One resource: what is free of it, a bar of what is in use, and what is reserved. */
function Resource({ title, free, total, text, exact, children }: ResourceProps) {
  const isKnown = free !== null && total !== null
  const used = isKnown ? percentOf(total - free, total) : undefined
  return (
    <section class="resource" aria-label={title}>
      <h3>{title}</h3>
      <p class="resource-free" title={isKnown ? `${exact(free)} of ${exact(total)}` : undefined}>
        {isKnown ? (
          <>
            <strong>{text(free)}</strong> free of {text(total)}
          </>
        ) : total === null ? (
          'not known'
        ) : (
          `${text(total)}; what is free is not known`
        )}
      </p>
      <Meter label={`${title} in use`} percent={used} />
      <p class="resource-reserved">Reserved: {children}</p>
    </section>
  )
}

function reserved(text: string, amount: number, total: number | null): string {
  const percent = total === null ? undefined : percentOf(amount, total)
  return percent === undefined ? text : `${text} (${percent} %)`
}

function cores(millis: number): string {
  return `${Number((millis / 1000).toFixed(2))} ${millis === 1000 ? 'core' : 'cores'}`
}

function coresExact(millis: number): string {
  return `${wholeNumber(millis)} thousandths of a core`
}
