// The settings of a tenant as forms. The API validates them, and its errors are shown next to the fields.
import { useState } from 'preact/hooks'
import type { ComponentChildren } from 'preact'
import { call } from '../api/client.ts'
import type { Plan, Tenant } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { Card } from '../parts/basics.tsx'
import { Notice } from '../parts/feedback.tsx'
import { fieldError, Form, SelectField, TextField, useAction, type Action } from '../parts/form.tsx'
import type { TabProps } from './tab-props.ts'

/** A text of a form as the API's number; an empty one as null; another text unchanged, so that the API rejects it. */
function numberOf(text: string): number | string | null {
  if (text.trim() === '') return null
  return Number.isFinite(Number(text)) ? Number(text) : text
}

const textOf = (value: number | string | null) => (value === null ? '' : String(value))

/** The tab of settings. */
export function SettingsTab(given: TabProps) {
  // The state that the forms began with: a change of another operator since then is not overwritten.
  const [etag, setEtag] = useState(given.etag)
  const props = { ...given, etag, setEtag }
  const isDedicated = props.tenant.isolation !== 'schema-per-tenant'
  return (
    <div class="columns">
      <Identity {...props} />
      <Rate {...props} />
      <Backups {...props} />
      <Drift {...props} />
      {isDedicated && <Services {...props} />}
    </div>
  )
}

interface SettingsProps extends TabProps {
  /** Sets the state that the next change expects. */
  setEtag: (etag: string | undefined) => void
}

interface GroupProps extends SettingsProps {
  title: string
  action: Action
  fields: readonly string[]
  /** Returns the body of the PATCH. */
  change: () => Record<string, unknown>
  children: ComponentChildren
}

/** One group of settings, which is saved with one PATCH. Another operator's change meanwhile is not overwritten. */
function Group({ title, action, fields, change, tenant, etag, setEtag, reload, children }: GroupProps) {
  const [isSaved, setSaved] = useState(false)
  return (
    <Card title={title}>
      <Form
        action={action}
        submit={['Save', 'Saving …']}
        fields={fields}
        onSubmit={async () => {
          setSaved(false)
          const response = await call('PATCH', `/v1/tenants/${encodeURIComponent(tenant.tenant_id)}`, {
            body: change(),
            headers: { prefer: 'wait=5', ...(etag === undefined ? {} : { 'if-match': etag }) },
          })
          setEtag(response.etag)
          setSaved(true)
          reload()
        }}
      >
        {children}
        {isSaved && action.error === undefined && <Notice kind="good">Saved.</Notice>}
      </Form>
    </Card>
  )
}

/** The fields of a PATCH that differ from the tenant. */
function changed(tenant: Tenant, wanted: Partial<Record<keyof Tenant, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(wanted).filter(([name, value]) => tenant[name as keyof Tenant] !== value))
}

function Identity(props: SettingsProps) {
  const { tenant } = props
  const action = useAction()
  const plans = useLoad<{ plans: Plan[] }>('/v1/plans')
  const [name, setName] = useState(tenant.name)
  const [plan, setPlan] = useState(tenant.plan)
  return (
    <Group
      {...props}
      title="Name and plan"
      action={action}
      fields={['name', 'plan']}
      change={() => changed(tenant, { name, plan })}
    >
      <TextField
        label="Name"
        value={name}
        onInput={setName}
        hint="A new name changes the tenant's URLs at once."
        error={fieldError(action.error, 'name')}
      />
      <SelectField
        label="Plan"
        value={plan}
        onInput={setPlan}
        options={plans.data?.plans.map(({ id }) => id) ?? [plan]}
        hint="A change of plan changes quotas and prices, not the isolation."
        error={fieldError(action.error, 'plan')}
      />
    </Group>
  )
}

function Rate(props: SettingsProps) {
  const { tenant } = props
  const action = useAction()
  const own = tenant.rate_limit.source === 'tenant'
  const [kind, setKind] = useState(own ? (tenant.rate_limit.per_second === null ? 'unlimited' : 'own') : 'plan')
  const [perSecond, setPerSecond] = useState(textOf(tenant.rate_limit.per_second))
  const [burst, setBurst] = useState(textOf(tenant.rate_limit.burst))
  const value = () =>
    kind === 'plan'
      ? null
      : kind === 'unlimited'
        ? 'unlimited'
        : { per_second: numberOf(perSecond), burst: numberOf(burst) }
  return (
    <Group
      {...props}
      title="Rate of requests"
      action={action}
      fields={['per_second', 'burst']}
      change={() => ({ rate_limit: value() })}
    >
      <SelectField
        label="Rate at each gateway"
        value={kind}
        onInput={setKind}
        options={[
          ['plan', "The plan's"],
          ['own', 'Its own'],
          ['unlimited', 'Unlimited'],
        ]}
      />
      {kind === 'own' && (
        <>
          <TextField
            label="Requests a second"
            type="number"
            value={perSecond}
            onInput={setPerSecond}
            error={fieldError(action.error, 'per_second')}
          />
          <TextField
            label="Burst"
            type="number"
            value={burst}
            onInput={setBurst}
            error={fieldError(action.error, 'burst')}
          />
        </>
      )}
    </Group>
  )
}

function Backups(props: SettingsProps) {
  const { tenant } = props
  const action = useAction()
  const [schedule, setSchedule] = useState(textOf(tenant.backup_schedule))
  const [count, setCount] = useState(textOf(tenant.backups_kept))
  return (
    <Group
      {...props}
      title="Backups"
      action={action}
      fields={['backup_schedule', 'backups_kept']}
      change={() =>
        changed(tenant, { backup_schedule: schedule === '' ? null : schedule, backups_kept: numberOf(count) })
      }
    >
      <TextField
        label="Schedule"
        value={schedule}
        onInput={setSchedule}
        placeholder="30 3 * * *"
        hint="A cron expression of five fields, UTC; empty: no schedule."
        error={fieldError(action.error, 'backup_schedule')}
      />
      <TextField
        label="Backups to retain"
        type="number"
        value={count}
        onInput={setCount}
        error={fieldError(action.error, 'backups_kept')}
      />
    </Group>
  )
}

function Drift(props: SettingsProps) {
  const { tenant } = props
  const action = useAction()
  const [policy, setPolicy] = useState<string>(tenant.drift_policy)
  return (
    <Group
      {...props}
      title="Drift"
      action={action}
      fields={['drift_policy']}
      change={() => changed(tenant, { drift_policy: policy })}
    >
      <SelectField
        label="Policy"
        value={policy}
        onInput={setPolicy}
        options={[
          ['repair', 'repair: differences are repaired'],
          ['report', 'report: differences are reported and left'],
          ['ignore', 'ignore: differences are left'],
        ]}
        error={fieldError(action.error, 'drift_policy')}
      />
    </Group>
  )
}

const mebibyte = 2 ** 20

function Services(props: SettingsProps) {
  const { tenant } = props
  const action = useAction()
  const [pause, setPause] = useState(textOf(tenant.pause_after_seconds))
  const [days, setDays] = useState(textOf(tenant.archive_days))
  const sizes = tenant.resources
  const [postgresMemory, setPostgresMemory] = useState(
    textOf(sizes === null ? null : sizes.postgres.memory_bytes / mebibyte),
  )
  const [postgresCpu, setPostgresCpu] = useState(textOf(sizes?.postgres.cpu_millis ?? null))
  const [runtimeMemory, setRuntimeMemory] = useState(
    textOf(sizes === null ? null : sizes.runtime.memory_bytes / mebibyte),
  )
  const [runtimeCpu, setRuntimeCpu] = useState(textOf(sizes?.runtime.cpu_millis ?? null))
  const size = (memory: string, cpu: string) => {
    const mebibytes = numberOf(memory)
    return { memory_bytes: typeof mebibytes === 'number' ? mebibytes * mebibyte : mebibytes, cpu_millis: numberOf(cpu) }
  }
  const change = () => {
    const resources = { postgres: size(postgresMemory, postgresCpu), runtime: size(runtimeMemory, runtimeCpu) }
    return {
      ...changed(tenant, { pause_after_seconds: numberOf(pause), archive_days: numberOf(days) }),
      ...(JSON.stringify(resources) === JSON.stringify(sizes) ? {} : { resources }),
    }
  }
  const error = (field: string) => fieldError(action.error, field)
  return (
    <Group
      {...props}
      title="Its own services"
      action={action}
      fields={['pause_after_seconds', 'archive_days', 'memory_bytes', 'cpu_millis']}
      change={change}
    >
      <TextField
        label="Pause after seconds without a request"
        type="number"
        value={pause}
        onInput={setPause}
        hint="Empty: the region's default; 0: never."
        error={error('pause_after_seconds')}
      />
      <TextField
        label="Days of point-in-time recovery"
        type="number"
        value={days}
        onInput={setDays}
        hint="Empty: no archive. A change to or from empty restarts Postgres."
        error={error('archive_days')}
      />
      <TextField
        label="Postgres: memory, MiB"
        type="number"
        value={postgresMemory}
        onInput={setPostgresMemory}
        error={error('memory_bytes')}
      />
      <TextField
        label="Postgres: thousandths of a core"
        type="number"
        value={postgresCpu}
        onInput={setPostgresCpu}
        error={error('cpu_millis')}
      />
      <TextField label="Runtime: memory, MiB" type="number" value={runtimeMemory} onInput={setRuntimeMemory} />
      <TextField label="Runtime: thousandths of a core" type="number" value={runtimeCpu} onInput={setRuntimeCpu} />
    </Group>
  )
}
