// The overview of a tenant: conditions, its shared database, operations with their steps, health now, and how to connect.
import type { Operation, Paged } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { distance, useNow } from '../format/times.ts'
import { Age, Badge, Card, Facts } from '../parts/basics.tsx'
import { Empty } from '../parts/feedback.tsx'
import { PagedTable, usePages } from '../parts/table.tsx'
import { useSession } from '../session.ts'
import { Conditions } from './conditions.tsx'
import { Connect } from '../parts/connect.tsx'
import { HomeDatabase } from './home-database.tsx'
import type { TabProps } from './tab-props.ts'

interface Health {
  status: string
  components: Record<string, { status: string; observed_at: string; message?: string }>
}

/** The first tab of a tenant. */
export function OverviewTab(props: TabProps) {
  const { tenant } = props
  const { scope } = useSession()
  return (
    <>
      <div class="columns">
        <Card title="Conditions">
          {tenant.conditions.length === 0 ? (
            <Empty title="Nothing was observed yet.">The conditions appear while the tenant is created.</Empty>
          ) : (
            <Conditions conditions={tenant.conditions} />
          )}
        </Card>
        <Card title="Tenant">
          <Facts
            facts={[
              ['URL', <a href={tenant.url}>{tenant.url}</a>],
              ['URL by path', <a href={tenant.path_url}>{tenant.path_url}</a>],
              ['Created', <Age at={tenant.created_at} />],
              ['Changed', <Age at={tenant.updated_at} />],
              [
                'Generation',
                tenant.generation === tenant.observed_generation
                  ? `${tenant.generation}, in effect`
                  : `${tenant.generation}; ${tenant.observed_generation} is in effect`,
              ],
              [
                'Rate at each gateway',
                tenant.rate_limit.per_second === null
                  ? 'unlimited'
                  : `${tenant.rate_limit.per_second}/s, burst ${tenant.rate_limit.burst ?? '–'} (${tenant.rate_limit.source})`,
              ],
            ]}
          />
          {scope !== 'billing' && <HealthNow id={tenant.tenant_id} />}
        </Card>
      </div>
      {scope !== 'billing' && <HomeDatabase {...props} />}
      {scope !== 'billing' && <Operations id={tenant.tenant_id} />}
      <Connect
        url={tenant.path_url}
        psql={{
          command: `PGPASSWORD=$DATABASE_PASSWORD psql '${tenant.database_url}'`,
          note: 'DATABASE_PASSWORD was in the database_url of the response that created the tenant. You can rotate it with the API.',
        }}
      />
    </>
  )
}

function HealthNow({ id }: { id: string }) {
  const health = useLoad<Health>(`/v1/tenants/${encodeURIComponent(id)}/health`, { tenant: id })
  if (health.data === undefined) return null
  return (
    <Facts
      facts={[
        ['Health now', <Badge text={health.data.status} />],
        ...Object.entries(health.data.components).map(
          ([name, { status, message }]): [string, preact.ComponentChildren] => [
            name,
            <>
              <Badge text={status} /> {message}
            </>,
          ],
        ),
      ]}
    />
  )
}

function Operations({ id }: { id: string }) {
  const pages = usePages<Paged & { operations: Operation[] }>(
    `/v1/operations?tenant_id=${encodeURIComponent(id)}&order=newest`,
    { tenant: id },
    10,
  )
  return (
    <Card title="Operations">
      <PagedTable
        pages={pages}
        what="operations"
        label="Operations"
        rowsOf={({ operations }) => operations}
        rowKey={(operation) => operation.id}
        columns={[
          { title: 'Operation', cell: ({ kind }) => <strong>{kind}</strong> },
          { title: 'State', cell: ({ state }) => <Badge text={state} /> },
          { title: 'Step', cell: ({ step }) => step ?? <span class="dim">not begun</span> },
          { title: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
          { title: 'Requested', cell: ({ created }) => <Age at={created} /> },
          { title: 'Duration', cell: (operation) => <Duration operation={operation} /> },
          { title: 'Error', cell: ({ error }) => error ?? <span class="dim">none</span> },
        ]}
        empty={<Empty title="There are no operations." />}
      />
    </Card>
  )
}

/** The time that an operation took, or takes so far. */
function Duration({ operation: { started, finished } }: { operation: Operation }) {
  const now = useNow()
  if (started === null) return <span class="dim">–</span>
  const milliseconds = (finished === null ? now : Date.parse(finished)) - Date.parse(started)
  if (finished !== null && milliseconds < 60_000) return <>{(milliseconds / 1000).toFixed(2)} s</>
  return <>{distance(0, milliseconds)}</>
}
