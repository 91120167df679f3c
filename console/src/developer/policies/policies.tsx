// The policies of row-level security as they are in Postgres now.
import { useEffect, useState } from 'preact/hooks'
import { call, type ApiError } from '../../api/client.ts'
import { toApiError } from '../../api/use-load.ts'
import { Badge, Card, ScreenTitle } from '../../parts/basics.tsx'
import { Empty, ErrorBox, Loading } from '../../parts/feedback.tsx'
import { Table } from '../../parts/table.tsx'
import { linkTo } from '../../router.ts'

interface Policy {
  table: string
  name: string
  isRestrictive: boolean
  command: string
  /** The condition of rows that are visible, and of rows that may be written; null without one. */
  visible: string | null
  written: string | null
  isOfService: boolean
}

/** The system role of the home owns the tables of the service. */
const query = `select p.tablename, p.policyname, p.permissive, p.cmd, p.qual, p.with_check,
  pg_catalog.pg_get_userbyid(c.relowner) = pg_catalog.current_schema() || '_system'
from pg_catalog.pg_policies p
join pg_catalog.pg_class c on c.oid = pg_catalog.format('%I.%I', p.schemaname, p.tablename)::regclass
where p.schemaname = pg_catalog.current_schema() order by p.tablename, p.policyname`

/** The screen of policies. */
export function PoliciesScreen() {
  const [state, setState] = useState<{ policies?: Policy[]; error?: ApiError }>({})
  useEffect(() => {
    call<{ rows: (string | null)[][] }>('POST', '/sql/v1', { body: { query } }).then(
      ({ body }) => setState({ policies: body.rows.map(toPolicy) }),
      (error: unknown) => setState({ error: toApiError(error) }),
    )
  }, [])
  const { policies, error } = state
  const own = policies?.filter(({ isOfService }) => !isOfService) ?? []
  const ofService = policies?.filter(({ isOfService }) => isOfService) ?? []
  return (
    <>
      <ScreenTitle title="Policies" note="Who may see and change which rows, as Postgres enforces it" />
      {error !== undefined && <ErrorBox error={error} />}
      {error === undefined && policies === undefined && <Loading what="the policies" />}
      {policies !== undefined && (
        <>
          <Card title="Your tables">
            {own.length === 0 ? (
              <Empty title="Your tables have no policies.">
                <a href={linkTo(['schemas'])}>Describe a collection</a> with the rows that each user may see.
              </Empty>
            ) : (
              <PolicyTable label="Policies of your tables" policies={own} />
            )}
          </Card>
          <Card>
            <details class="service-policies">
              <summary>Tables of the service</summary>
              <PolicyTable label="Policies of the tables of the service" policies={ofService} />
            </details>
          </Card>
        </>
      )}
    </>
  )
}

function PolicyTable({ label, policies }: { label: string; policies: Policy[] }) {
  return (
    <Table
      label={label}
      rows={policies}
      rowKey={({ table, name }) => `${table} ${name}`}
      columns={[
        { title: 'Table', isWhole: true, cell: ({ table }) => <strong>{table}</strong> },
        { title: 'Policy', isWhole: true, cell: ({ name }) => name },
        {
          title: 'Effect',
          cell: ({ isRestrictive }) =>
            isRestrictive ? <Badge text="restricts" kind="warn" /> : <Badge text="permits" kind="good" />,
        },
        { title: 'Command', isWhole: true, cell: ({ command }) => <code>{command}</code> },
        { title: 'Rows', cell: (policy) => <Conditions policy={policy} /> },
      ]}
    />
  )
}

function Conditions({ policy: { visible, written } }: { policy: Policy }) {
  const conditions = [
    ['that are visible', visible],
    ['that may be written', written],
  ].flatMap(([term = '', condition]) => (condition == null ? [] : [{ term, condition }]))
  return (
    <dl class="policy-conditions">
      {conditions.map(({ term, condition }) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>
            <code>{condition}</code>
          </dd>
        </div>
      ))}
    </dl>
  )
}

function toPolicy([table, name, permissive, command, visible, written, isOfService]: (string | null)[]): Policy {
  return {
    table: table ?? '',
    name: name ?? '',
    isRestrictive: permissive === 'RESTRICTIVE',
    command: command ?? '',
    visible: visible ?? null,
    written: written ?? null,
    isOfService: isOfService === 't',
  }
}
