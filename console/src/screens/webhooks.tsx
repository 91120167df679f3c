// Webhooks: the operator's endpoints, and the messages to one of them.
import { useState } from 'preact/hooks'
import { call } from '../api/client.ts'
import type { Delivery, Paged, Webhook } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { Age, Badge, Card, Facts, ScreenTitle } from '../parts/basics.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Empty, ErrorBox, Load } from '../parts/feedback.tsx'
import { fieldError, Form, TextField, useAction } from '../parts/form.tsx'
import { Secrets } from '../parts/secrets.tsx'
import { PagedTable, Table, usePages } from '../parts/table.tsx'
import { linkTo, open } from '../router.ts'
import { useIsAdmin } from '../session.ts'

/** The screen of webhooks, or of one of them. */
export function WebhooksScreen({ selected }: { selected: string | undefined }) {
  return selected === undefined ? <AllWebhooks /> : <OneWebhook id={selected} />
}

function AllWebhooks() {
  const isAdmin = useIsAdmin()
  const webhooks = useLoad<{ webhooks: Webhook[] }>('/v1/webhooks')
  const [isCreating, setCreating] = useState(false)
  return (
    <>
      <ScreenTitle title="Webhooks" note="Endpoints of yours that receive events of tenants, quotas and invoices">
        {isAdmin && (
          <button type="button" class="button primary" onClick={() => setCreating(true)}>
            Add a webhook
          </button>
        )}
      </ScreenTitle>
      {isCreating && <AddWebhook onClose={() => setCreating(false)} onAdded={webhooks.reload} />}
      <Card>
        <Load load={webhooks} what="webhooks">
          {({ webhooks: all }) =>
            all.length === 0 ? (
              <Empty title="There are no webhooks yet.">
                Add one to be notified when a tenant fails or nears a quota.
              </Empty>
            ) : (
              <Table
                label="Webhooks"
                rows={all}
                rowKey={({ id }) => id}
                columns={[
                  {
                    title: 'URL',
                    cell: ({ id, url }) => (
                      <a class="strong" href={linkTo(['webhooks', id])}>
                        {url}
                      </a>
                    ),
                  },
                  { title: 'State', cell: WebhookState },
                  { title: 'Description', cell: ({ description }) => description || <span class="dim">none</span> },
                  { title: 'Events', cell: ({ types }) => (types.length === 0 ? 'all' : types.join(', ')) },
                  { title: 'Created', cell: ({ created_at: at }) => <Age at={at} /> },
                ]}
              />
            )
          }
        </Load>
      </Card>
    </>
  )
}

function WebhookState({ enabled, disabled_reason: reason }: Webhook) {
  if (enabled) return <Badge text="enabled" kind="good" />
  return <Badge text={reason === 'gone' ? 'disabled: the endpoint is gone' : 'disabled'} kind="warn" />
}

function AddWebhook({ onClose, onAdded }: { onClose: () => void; onAdded: () => void }) {
  const action = useAction()
  const [url, setUrl] = useState('')
  const [description, setDescription] = useState('')
  const [types, setTypes] = useState('')
  const [secret, setSecret] = useState<string | undefined>(undefined)
  if (secret !== undefined)
    return <Secrets title="The webhook was added" file="webhook-secret" secrets={{ secret }} onClose={onClose} />
  return (
    <Dialog title="Add a webhook" onClose={onClose}>
      <Form
        action={action}
        submit={['Add the webhook', 'Adding …']}
        onCancel={onClose}
        fields={['url', 'description', 'types']}
        onSubmit={async () => {
          const list = types.split(/[\s,]+/).filter((type) => type !== '')
          const { body } = await call<Webhook & { secret: string }>('POST', '/v1/webhooks', {
            body: { url, description, types: list },
          })
          onAdded()
          setSecret(body.secret)
        }}
      >
        <TextField
          label="URL"
          value={url}
          onInput={setUrl}
          isRequired
          placeholder="https://…"
          error={fieldError(action.error, 'url')}
        />
        <TextField
          label="Description"
          value={description}
          onInput={setDescription}
          error={fieldError(action.error, 'description')}
        />
        <TextField
          label="Types of events"
          value={types}
          onInput={setTypes}
          hint="Separated by commas, such as tenant.failed; empty: all."
          error={fieldError(action.error, 'types')}
        />
      </Form>
    </Dialog>
  )
}

const deliveryStates = ['', 'pending', 'delivered', 'dead']

function OneWebhook({ id }: { id: string }) {
  const isAdmin = useIsAdmin()
  const path = `/v1/webhooks/${encodeURIComponent(id)}`
  const webhook = useLoad<Webhook>(path)
  const [state, setState] = useState('')
  const deliveries = usePages<Paged & { deliveries: Delivery[] }>(
    `${path}/deliveries${state === '' ? '' : `?state=${state}`}`,
    'all',
  )
  const [isRemoving, setRemoving] = useState(false)
  const action = useAction()
  const change = (work: () => Promise<unknown>) =>
    action.run(async () => {
      await work()
      webhook.reload()
      deliveries.load.reload()
    })
  return (
    <>
      <p class="crumbs">
        <a href={linkTo(['webhooks'])}>Webhooks</a>
      </p>
      <ScreenTitle title={webhook.data?.url ?? 'Webhook'}>
        {isAdmin && webhook.data !== undefined && (
          <>
            <button
              type="button"
              class="button"
              onClick={() => change(() => call('PATCH', path, { body: { enabled: webhook.data?.enabled !== true } }))}
            >
              {webhook.data.enabled ? 'Disable' : 'Enable'}
            </button>
            <button
              type="button"
              class="button"
              onClick={() => change(() => call('POST', `${path}/replay`, { body: {} }))}
            >
              Send dead messages again
            </button>
            <button type="button" class="button danger" onClick={() => setRemoving(true)}>
              Remove
            </button>
          </>
        )}
      </ScreenTitle>
      {action.error !== undefined && <ErrorBox error={action.error} />}
      {isRemoving && (
        <Confirm
          title="Remove the webhook"
          submit={['Remove the webhook', 'Removing …']}
          kind="danger"
          onClose={() => setRemoving(false)}
          onConfirm={async () => {
            await call('DELETE', path)
            open(linkTo(['webhooks']))
          }}
        >
          <p>Messages that were not delivered yet are removed too.</p>
        </Confirm>
      )}
      <Card title="Endpoint">
        <Load load={webhook} what="the webhook">
          {(body) => (
            <Facts
              facts={[
                ['State', WebhookState(body)],
                ['Description', body.description || 'none'],
                ['Events', body.types.length === 0 ? 'all' : body.types.join(', ')],
                ['Created', <Age at={body.created_at} />],
              ]}
            />
          )}
        </Load>
      </Card>
      <Card
        title="Deliveries"
        actions={
          <label class="inline-field">
            <span>State</span>
            <select value={state} onInput={(event) => setState(event.currentTarget.value)}>
              {deliveryStates.map((one) => (
                <option key={one} value={one}>
                  {one === '' ? 'All' : one}
                </option>
              ))}
            </select>
          </label>
        }
      >
        <PagedTable
          pages={deliveries}
          what="deliveries"
          label="Deliveries"
          rowsOf={({ deliveries: rows }) => rows}
          rowKey={(delivery) => delivery.id}
          columns={[
            { title: 'Event', cell: ({ type }) => <code>{type}</code> },
            { title: 'State', cell: (delivery) => <Badge text={delivery.state} /> },
            { title: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
            { title: 'Last status', isNumber: true, cell: ({ last_status: status }) => status ?? '–' },
            { title: 'Last error', cell: ({ last_error: error }) => error ?? <span class="dim">none</span> },
            { title: 'Event at', cell: ({ event_at: at }) => <Age at={at} /> },
            {
              title: 'Message',
              cell: ({ data }) => (
                <details>
                  <summary>Show</summary>
                  <pre tabIndex={0}>{JSON.stringify(data, undefined, 2)}</pre>
                </details>
              ),
            },
            {
              title: 'Action',
              cell: (delivery) =>
                isAdmin ? (
                  <button
                    type="button"
                    class="button small"
                    onClick={() => change(() => call('POST', `${path}/deliveries/${delivery.id}/replay`, { body: {} }))}
                  >
                    Send again
                  </button>
                ) : (
                  '–'
                ),
            },
          ]}
          empty={<Empty title="No messages yet.">A message is sent at the next event.</Empty>}
        />
      </Card>
    </>
  )
}
