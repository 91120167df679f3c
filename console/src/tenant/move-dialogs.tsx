// The dialogs that move a tenant's home to another shared database or region and back, or into services of its own and out of them.
import { useState } from 'preact/hooks'
import { call } from '../api/client.ts'
import type { Operation, Region, SharedDatabase, Tenant } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { wholeNumber } from '../format/numbers.ts'
import { Confirm } from '../parts/confirm.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Load } from '../parts/feedback.tsx'
import { Form, SelectField, TextField, useAction } from '../parts/form.tsx'
import { limitOf, useSession } from '../session.ts'
import { destinationOf, originOf } from './move-ends.ts'

interface MoveProps {
  tenant: Tenant
  onDone: () => void
  onClose: () => void
}

interface MoveHomeProps extends MoveProps {
  /** The database in which the home is. */
  database: string
  /** Whether the last move can be reverted until this one begins. */
  endsRevert: boolean
}

const tenantPath = ({ tenant_id: id }: Tenant) => `/v1/tenants/${encodeURIComponent(id)}`
const pathOf = (tenant: Tenant) => `${tenantPath(tenant)}/move`

/** Moves the home to a database that the operator selects, or names if the session may not list them. */
export function MoveHome(props: MoveHomeProps) {
  const { tenant, database, onClose } = props
  const canList = limitOf(useSession()) !== 'tenant'
  const path = `/v1/regions/${encodeURIComponent(tenant.region)}/databases`
  const load = useLoad<{ databases: SharedDatabase[] }>(canList ? path : undefined)
  return (
    <Dialog title={`Move the home of ${tenant.name}`} onClose={onClose}>
      {canList ? (
        <Load load={load} what="shared databases">
          {({ databases }) => <MoveForm {...props} targets={targetsIn(databases, database)} />}
        </Load>
      ) : (
        <MoveForm {...props} targets={undefined} />
      )}
    </Dialog>
  )
}

type Target = [name: string, text: string]

/** The other databases of the region with their homes, and the next one, which the move opens. */
function targetsIn(databases: readonly SharedDatabase[], current: string): Target[] {
  const next = databases.at(-1)?.name.replace(/\d+$/, (number) => String(Number(number) + 1))
  return [
    ...databases
      .filter(({ name }) => name !== current)
      .map(({ name, homes, max_homes: max }): Target => [
        name,
        `${name}: ${wholeNumber(homes)} of ${wholeNumber(max)} homes`,
      ]),
    ...(next === undefined ? [] : [[next, `${next}: a new database`] satisfies Target]),
  ]
}

interface MoveFormProps extends MoveHomeProps {
  /** The databases to select from; undefined if the session may not list them. */
  targets: Target[] | undefined
}

function MoveForm({ tenant, database, endsRevert, targets, onDone, onClose }: MoveFormProps) {
  const action = useAction()
  const [target, setTarget] = useState(targets?.[0]?.[0] ?? '')
  return (
    <Form
      action={action}
      submit={['Move the home', 'Starting …']}
      onCancel={onClose}
      onSubmit={async () => {
        await call('POST', pathOf(tenant), { body: { database: target } })
        onDone()
        onClose()
      }}
    >
      <div class="prose">
        <p>
          The home leaves <code>{database}</code>. The tenant is served meanwhile; its requests wait for some seconds at
          the end. Keys, files and URL stay. SQL sessions end, and the name of the database in its{' '}
          <code>database_url</code> changes.
        </p>
        {endsRevert && <p>The last move cannot be reverted any more.</p>}
      </div>
      {targets === undefined ? (
        <TextField
          label="Database"
          value={target}
          onInput={setTarget}
          isRequired
          hint="A shared database of the region, or the name that follows the last one: it is then opened."
        />
      ) : (
        <SelectField label="Database" value={target} onInput={setTarget} options={targets} />
      )}
    </Form>
  )
}

interface RevertMoveProps extends MoveProps {
  /** The move that is reverted. */
  move: NonNullable<Operation['move']>
}

/** Returns the home to the database that its last move has left, after a confirmation. */
export function RevertMove({ tenant, move, onDone, onClose }: RevertMoveProps) {
  const origin = originOf(move)
  return (
    <Confirm
      title={`Return the home to ${origin}?`}
      submit={[`Return the home to ${origin}`, 'Starting …']}
      onClose={onClose}
      onConfirm={async () => {
        await call('POST', `${pathOf(tenant)}/revert`)
        onDone()
      }}
    >
      <p>
        The home leaves <code>{destinationOf(move)}</code>, with everything that the tenant has written since the move.
        Its requests wait for some seconds, and SQL sessions end. You cannot revert the revert.
      </p>
    </Confirm>
  )
}

interface ChangeIsolationProps extends MoveProps {
  /** Whether the last move can be reverted until this one begins. */
  endsRevert: boolean
}

/** Where a home can be, by the isolation of its tenant. */
const homes: [isolation: string, text: string][] = [
  ['schema-per-tenant', 'a shared database and shared runtimes'],
  ['database-per-tenant', 'a Postgres and a runtime of its own'],
  ['cluster-per-tenant', 'a cluster of its own: three members of Postgres and two runtimes'],
]

/** Moves the tenant into services of another kind, or to another region, after a confirmation. */
export function ChangeIsolation({ tenant, endsRevert, onDone, onClose }: ChangeIsolationProps) {
  const present = { isolation: tenant.isolation, region: tenant.region }
  const [chosen, setChosen] = useState<string | undefined>(undefined)
  const [region, setRegion] = useState(present.region)
  const isSameRegion = region === present.region
  const offered = homes.filter(([one]) => !isSameRegion || one !== present.isolation)
  const preset = isSameRegion ? offered[0]?.[0] : present.isolation
  const isolation = offered.find(([one]) => one === chosen)?.[0] ?? preset ?? ''
  // A key that is limited to a region moves no tenant out of it.
  const canChoose = limitOf(useSession()) === 'nothing'
  const regions = useLoad<{ regions: Region[] }>(canChoose ? '/v1/regions' : undefined).data?.regions ?? []
  const changes = { isolation, region }
  return (
    <Confirm
      title={`Move ${tenant.name} to other services?`}
      submit={['Start the move', 'Starting …']}
      onClose={onClose}
      onConfirm={async () => {
        const changed = (['isolation', 'region'] as const).filter((field) => changes[field] !== present[field])
        const body = Object.fromEntries(changed.map((field) => [field, changes[field]]))
        await call('PATCH', tenantPath(tenant), { body })
        onDone()
      }}
    >
      <p>
        The tenant is served meanwhile; its requests wait for some seconds at the end. Keys, files and URL stay. SQL
        sessions end, and the name of the database in its <code>database_url</code> can change. What it leaves stays for
        as long as the move can be reverted.
      </p>
      {endsRevert && <p>The last move cannot be reverted any more.</p>}
      <SelectField label="To" value={isolation} onInput={setChosen} options={offered} />
      {regions.length > 1 && (
        <SelectField
          label="Region"
          value={region}
          onInput={setRegion}
          options={regions.map(({ id }): [string, string] => [id, id])}
        />
      )}
    </Confirm>
  )
}
