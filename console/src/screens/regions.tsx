// Regions with their hosts, shared databases, engines and conditions, and how complete each source of usage is.
import type { Host, Paged, Region } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { Age, Badge, Card, Facts, ScreenTitle } from '../parts/basics.tsx'
import { Empty, ErrorBox, Load } from '../parts/feedback.tsx'
import { PagedTable, usePages } from '../parts/table.tsx'
import { linkTo } from '../router.ts'
import { reasonAgainst, useSession } from '../session.ts'
import { Conditions } from '../tenant/conditions.tsx'
import { hostsAccess, sourcesAccess } from './access.ts'
import { HostView } from './host.tsx'
import { SharedDatabases } from './shared-databases.tsx'

interface UsageSource {
  source: string
  tenant_id: string | null
  complete_until: string
  last_seen_at: string
  retired_at: string | null
}

/** The time between two reads of the hosts, which the control plane measures every 15 seconds. */
const hostMs = 10_000

/** The screen of regions and hosts. */
export function RegionsScreen() {
  const regions = useLoad<{ regions: Region[] }>('/v1/regions', 'all')
  const reason = reasonAgainst(useSession(), hostsAccess)
  const hosts = useLoad<{ hosts: Host[] }>(reason === undefined ? '/v1/hosts' : undefined, { everyMs: hostMs })
  return (
    <>
      <ScreenTitle
        title="Regions and hosts"
        note="Where tenants run, what is free there, and the parts that report usage"
      />
      <Load load={regions} what="regions">
        {({ regions: all }) => (
          <>
            {all.length === 0 && (
              <Card>
                <Empty title="Your key sees no region.">
                  Sign in with a key that is not limited to another region.
                </Empty>
              </Card>
            )}
            {all.map((region) => (
              <Card
                key={region.id}
                title={region.id}
                actions={<a href={linkTo(['fleet'], { region: region.id })}>Tenants of this region</a>}
              >
                <Facts
                  facts={[
                    ['Engine', region.engine],
                    ['Domain', <code>{region.domain}</code>],
                    ['Isolation models', region.isolations.join(', ')],
                  ]}
                />
                {reason !== undefined && <p class="dim">{reason}</p>}
                {hosts.error !== undefined && hosts.data === undefined && <ErrorBox error={hosts.error} />}
                {hosts.data?.hosts
                  .filter((host) => host.region === region.id)
                  .map((host) => (
                    <HostView key={host.id} host={host} />
                  ))}
                {reason === undefined && region.isolations.includes('schema-per-tenant') && (
                  <SharedDatabases region={region.id} />
                )}
                {region.conditions.length === 0 ? (
                  <p class="dim">
                    No condition was reported: this region was not checked yet, or has no engine to check.
                  </p>
                ) : (
                  <Conditions conditions={region.conditions} />
                )}
              </Card>
            ))}
          </>
        )}
      </Load>
      <Sources />
    </>
  )
}

function Sources() {
  const reason = reasonAgainst(useSession(), sourcesAccess)
  return (
    <Card title="Sources of usage">
      {reason === undefined ? <SourcesTable /> : <Empty title="The sources are not available.">{reason}</Empty>}
    </Card>
  )
}

function SourcesTable() {
  const sources = usePages<Paged & { sources: UsageSource[] }>('/v1/usage/sources')
  return (
    <PagedTable
      pages={sources}
      what="sources"
      label="Sources of usage"
      rowsOf={({ sources: rows }) => rows}
      rowKey={({ source }) => source}
      columns={[
        { title: 'Source', cell: ({ source }) => <code>{source}</code> },
        {
          title: 'State',
          cell: ({ retired_at: retired }) =>
            retired === null ? <Badge text="reporting" kind="good" /> : <Badge text="retired" />,
        },
        { title: 'Complete until', cell: ({ complete_until: at }) => <Age at={at} /> },
        { title: 'Last report', cell: ({ last_seen_at: at }) => <Age at={at} /> },
      ]}
      empty={<Empty title="No gateway or runtime has reported usage yet." />}
    />
  )
}
