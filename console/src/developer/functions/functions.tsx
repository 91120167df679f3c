// The functions of the tenant, and the dialog that deploys one.
import { useState } from 'preact/hooks'
import { ApiError, call } from '../../api/client.ts'
import { useLoad } from '../../api/use-load.ts'
import { Age, Badge, Card, ScreenTitle } from '../../parts/basics.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Empty, Load } from '../../parts/feedback.tsx'
import { Field, fieldError, Form, TextField, useAction } from '../../parts/form.tsx'
import { Table } from '../../parts/table.tsx'
import { linkTo, open } from '../../router.ts'

/** A function as the list shows it. */
export interface FunctionItem {
  id: string
  name: string
  description: string
  trigger: unknown
  enabled: boolean
  /** ISO 8601. */
  updated_at: string
}

export const functionsPath = '/functions/v1'

/** The screen of all functions. */
export function FunctionsScreen() {
  const load = useLoad<FunctionItem[]>(functionsPath)
  const [isDeploying, setDeploying] = useState(false)
  return (
    <>
      <ScreenTitle title="Functions" note="WebAssembly modules that HTTP, changes, schedules and webhooks start">
        <button type="button" class="button primary" onClick={() => setDeploying(true)}>
          Deploy a function
        </button>
      </ScreenTitle>
      {isDeploying && <Deploy onClose={() => setDeploying(false)} />}
      <Card>
        <Load load={load} what="the functions">
          {(functions) =>
            functions.length === 0 ? (
              <Empty title="There are no functions yet.">Compile a module, then deploy it here.</Empty>
            ) : (
              <Table
                label="Functions"
                rows={functions}
                rowKey={({ id }) => id}
                columns={[
                  { title: 'Name', cell: ({ name }) => <a href={linkTo(['functions', name])}>{name}</a> },
                  { title: 'Trigger', cell: ({ trigger }) => triggerName(trigger) },
                  {
                    title: 'State',
                    cell: ({ enabled }) => (
                      <Badge text={enabled ? 'enabled' : 'disabled'} kind={enabled ? 'good' : 'quiet'} />
                    ),
                  },
                  { title: 'Changed', cell: ({ updated_at: at }) => <Age at={at} /> },
                ]}
              />
            )
          }
        </Load>
      </Card>
    </>
  )
}

/** Returns the kind of a trigger, which is a text or an object with one member. */
export function triggerName(trigger: unknown): string {
  return typeof trigger === 'string' ? trigger : (Object.keys(trigger ?? {})[0] ?? '–')
}

function Deploy({ onClose }: { onClose: () => void }) {
  const action = useAction()
  const [name, setName] = useState('')
  const [trigger, setTrigger] = useState('"Http"')
  const [file, setFile] = useState<File | undefined>(undefined)
  const submit = async () => {
    if (file === undefined) throw new ApiError(0, 'NO_FILE', 'Choose the module first.', undefined)
    const form = new FormData()
    form.set('name', name)
    form.set('trigger', trigger)
    form.set('wasm', file)
    await call('POST', `${functionsPath}/deploy`, { body: form })
    open(linkTo(['functions', name]))
  }
  return (
    <Dialog title="Deploy a function" onClose={onClose}>
      <Form
        action={action}
        onSubmit={submit}
        submit={['Deploy the function', 'Deploying …']}
        onCancel={onClose}
        fields={['name', 'trigger']}
      >
        <TextField
          label="Name"
          value={name}
          onInput={setName}
          isRequired
          hint="1 to 64 of a-z, 0-9, hyphen and underscore, beginning with a letter."
          error={fieldError(action.error, 'name')}
        />
        <Field label="Module" hint="A .wasm file of at most 10 MB.">
          {(attributes) => (
            <input
              {...attributes}
              type="file"
              accept=".wasm,application/wasm"
              onChange={(event) => setFile(event.currentTarget.files?.[0])}
            />
          )}
        </Field>
        <TextField
          label="Trigger as JSON"
          value={trigger}
          onInput={setTrigger}
          hint={
            <>
              <code>"Http"</code>, or for example <code>{'{"Schedule":{"cron":"0 3 * * *"}}'}</code>
            </>
          }
          error={fieldError(action.error, 'trigger')}
        />
      </Form>
    </Dialog>
  )
}
