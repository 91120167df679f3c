// One function: invoke it, read its invocations and its logs, disable and delete it.
import { useState } from 'preact/hooks'
import { call, request } from '../../api/client.ts'
import { useLoad } from '../../api/use-load.ts'
import { exactBytes, wholeNumber } from '../../format/numbers.ts'
import { Age, Badge, Card, Facts, ScreenTitle } from '../../parts/basics.tsx'
import { Confirm } from '../../parts/confirm.tsx'
import { Empty, Load } from '../../parts/feedback.tsx'
import { Field, Form, useAction } from '../../parts/form.tsx'
import { PagedTable, usePages } from '../../parts/table.tsx'
import { linkTo, open } from '../../router.ts'
import { functionsPath, triggerName, type FunctionItem } from './functions.tsx'

interface FunctionDetails extends FunctionItem {
  invocation_count: number
  /** ISO 8601. */
  last_invocation: string | null
}

interface Invocation {
  id: string
  trigger: string
  status: string
  duration_ms: number
  memory_peak: number
  error_message: string | null
  timestamp: string
}

interface LogLine {
  timestamp: string
  level: string
  message: string
  invocation_id: string
}

/** The screen of a function. */
export function FunctionScreen({ name }: { name: string }) {
  const path = `${functionsPath}/${encodeURIComponent(name)}`
  const load = useLoad<FunctionDetails>(path)
  const invocations = usePages<{ invocations: Invocation[]; next_cursor: string | null }>(`${path}/invocations`)
  const logs = usePages<{ logs: LogLine[]; next_cursor: string | null }>(`${path}/logs`)
  const [isDeleting, setDeleting] = useState(false)
  const reload = () => {
    load.reload()
    invocations.load.reload()
    logs.load.reload()
  }
  return (
    <>
      <p class="crumbs">
        <a href={linkTo(['functions'])}>Functions</a>
      </p>
      <ScreenTitle title={name}>
        <button type="button" class="button" onClick={reload}>
          Read again
        </button>
        <button type="button" class="button danger" onClick={() => setDeleting(true)}>
          Delete the function
        </button>
      </ScreenTitle>
      {isDeleting && (
        <Confirm
          title="Delete the function"
          submit={['Delete the function', 'Deleting …']}
          kind="danger"
          typed={name}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await call('DELETE', path)
            open(linkTo(['functions']))
          }}
        >
          <p>
            <strong>{name}</strong> is deleted with the records of its invocations.
          </p>
        </Confirm>
      )}
      <Card>
        <Load load={load} what="the function">
          {({ description, trigger, enabled, invocation_count: count, last_invocation: last }) => (
            <Facts
              facts={[
                ['Description', description === '' ? '–' : description],
                ['Trigger', triggerName(trigger)],
                [
                  'State',
                  <Badge key="state" text={enabled ? 'enabled' : 'disabled'} kind={enabled ? 'good' : 'quiet'} />,
                ],
                ['Invocations', wholeNumber(count)],
                ['Last invocation', <Age key="last" at={last} never="never" />],
              ]}
            />
          )}
        </Load>
      </Card>
      <Invoke name={name} onDone={reload} />
      <Card title="Invocations">
        <PagedTable
          pages={invocations}
          what="the invocations"
          label="Invocations"
          rowsOf={({ invocations: rows }) => rows}
          rowKey={({ id }) => id}
          empty={<Empty title="There are no invocations yet.">Invoke the function above.</Empty>}
          columns={[
            { title: 'Time', cell: ({ timestamp: at }) => <Age at={at} /> },
            { title: 'Trigger', cell: ({ trigger }) => trigger },
            {
              title: 'Status',
              cell: ({ status }) => <Badge text={status} kind={status === 'success' ? 'good' : 'bad'} />,
            },
            { title: 'Duration', isNumber: true, cell: ({ duration_ms: ms }) => `${wholeNumber(ms)} ms` },
            { title: 'Memory', isNumber: true, cell: ({ memory_peak: bytes }) => exactBytes(bytes) },
            { title: 'Error', cell: ({ error_message: error }) => error ?? <span class="dim">–</span> },
          ]}
        />
      </Card>
      <Card title="Logs">
        <PagedTable
          pages={logs}
          what="the logs"
          label="Logs"
          rowsOf={({ logs: rows }) => rows}
          rowKey={(line) => JSON.stringify(line)}
          empty={<Empty title="The function has logged nothing yet." />}
          columns={[
            { title: 'Time', cell: ({ timestamp: at }) => <Age at={at} /> },
            { title: 'Level', cell: ({ level }) => level },
            { title: 'Message', cell: ({ message }) => <span class="cell-value">{message}</span> },
          ]}
        />
      </Card>
    </>
  )
}

function Invoke({ name, onDone }: { name: string; onDone: () => void }) {
  const action = useAction()
  const [body, setBody] = useState('{}')
  const [response, setResponse] = useState<{ status: number; id: string; text: string } | undefined>(undefined)
  const submit = async () => {
    setResponse(undefined)
    const path = `${functionsPath}/invoke/${encodeURIComponent(name)}`
    const received = await request('POST', path, { body }).finally(onDone)
    const id = received.headers.get('x-invocation-id') ?? ''
    setResponse({ status: received.status, id, text: await received.text() })
  }
  return (
    <Card title="Invoke">
      <Form action={action} onSubmit={submit} submit={['Invoke the function', 'Invoking …']}>
        <Field label="Body of the request">
          {(attributes) => (
            <textarea
              {...attributes}
              class="code"
              rows={4}
              value={body}
              spellcheck={false}
              onInput={(event) => setBody(event.currentTarget.value)}
            />
          )}
        </Field>
      </Form>
      {response !== undefined && (
        <>
          <p role="status">
            Status {response.status} · invocation <code>{response.id}</code>
          </p>
          <pre class="preview" tabIndex={0} aria-label="Body of the response">
            {response.text}
          </pre>
        </>
      )}
    </Card>
  )
}
