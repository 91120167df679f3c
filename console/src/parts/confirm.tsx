// A dialog that runs one write after a confirmation. A dangerous one needs a typed name.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Dialog } from './dialog.tsx'
import { Form, TextField, useAction } from './form.tsx'

interface ConfirmProps {
  title: string
  submit: [text: string, running: string]
  kind?: 'primary' | 'danger'
  /** The text that must be typed first. */
  typed?: string
  onConfirm: () => Promise<void>
  onClose: () => void
  children: ComponentChildren
}

/** Asks for a confirmation, and closes after the write has succeeded. */
export function Confirm({ title, submit, kind = 'primary', typed, onConfirm, onClose, children }: ConfirmProps) {
  const action = useAction()
  const [text, setText] = useState('')
  return (
    <Dialog title={title} onClose={onClose}>
      <Form
        action={action}
        submit={submit}
        kind={kind}
        isDisabled={typed !== undefined && text !== typed}
        onCancel={onClose}
        onSubmit={async () => {
          await onConfirm()
          onClose()
        }}
      >
        <div class="prose">{children}</div>
        {typed !== undefined && (
          <TextField label={`Type ${typed} to confirm`} value={text} onInput={setText} isRequired />
        )}
      </Form>
    </Dialog>
  )
}
