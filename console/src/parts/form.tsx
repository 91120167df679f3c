// Forms: fields with labels, the API's own errors next to the field that they name, and a button that states what it does.
import type { ComponentChildren } from 'preact'
import { useId, useState } from 'preact/hooks'
import { ApiError } from '../api/client.ts'
import { toApiError } from '../api/use-load.ts'
import { ErrorBox } from './feedback.tsx'

/** A write in progress or done. */
export interface Action {
  isRunning: boolean
  error: ApiError | undefined
  /** Runs a write, unless one is in progress. */
  run(work: () => Promise<void>): void
  clear(): void
}

/** Creates the state of a write. */
export function useAction(): Action {
  const [state, setState] = useState<{ isRunning: boolean; error: ApiError | undefined }>({
    isRunning: false,
    error: undefined,
  })
  return {
    ...state,
    run(work) {
      if (state.isRunning) return
      setState({ isRunning: true, error: undefined })
      work().then(
        () => setState({ isRunning: false, error: undefined }),
        (error: unknown) => setState({ isRunning: false, error: toApiError(error) }),
      )
    },
    clear: () => setState({ isRunning: false, error: undefined }),
  }
}

interface FieldProps {
  label: string
  hint?: ComponentChildren
  /** The error that the API returned for this field. */
  error?: string | undefined
  children: (attributes: { id: string; 'aria-describedby': string; 'aria-invalid': boolean }) => ComponentChildren
}

/** A field with its label, a hint and its error. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': `${id}-hint`, 'aria-invalid': error !== undefined })}
      <div id={`${id}-hint`} class="field-hint">
        {error !== undefined && (
          <span class="field-error" role="alert">
            {error}{' '}
          </span>
        )}
        {hint}
      </div>
    </div>
  )
}

/** Returns the message of an error that names the field; undefined for another error. */
export function fieldError(error: ApiError | undefined, field: string): string | undefined {
  if (error === undefined || error.status >= 500) return undefined
  return error.message.includes(`"${field}"`) ? error.message : undefined
}

interface FormProps {
  action: Action
  onSubmit: () => Promise<void>
  /** The text of the button, and of the button while the write is in progress. */
  submit: [text: string, running: string]
  kind?: 'primary' | 'danger'
  isDisabled?: boolean
  /** Names of the fields that show their own errors. */
  fields?: readonly string[]
  onCancel?: () => void
  children?: ComponentChildren
}

/** A form that runs one write. */
export function Form(props: FormProps) {
  const { action, onSubmit, submit, kind = 'primary', isDisabled = false, fields = [], onCancel, children } = props
  const isShown = fields.some((field) => fieldError(action.error, field) !== undefined)
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault()
        action.run(onSubmit)
      }}
    >
      {children}
      {action.error !== undefined && !isShown && <ErrorBox error={action.error} />}
      {action.error !== undefined && isShown && action.error.requestId !== undefined && (
        <p class="notice-detail">
          <code>{action.error.code}</code> · request <code>{action.error.requestId}</code>
        </p>
      )}
      <div class="form-actions">
        <button type="submit" class={`button ${kind}`} disabled={action.isRunning || isDisabled}>
          {action.isRunning ? submit[1] : submit[0]}
        </button>
        {onCancel !== undefined && (
          <button type="button" class="button" onClick={onCancel}>
            Cancel
          </button>
        )}
      </div>
    </form>
  )
}

interface TextFieldProps {
  label: string
  value: string
  onInput: (value: string) => void
  hint?: ComponentChildren
  error?: string | undefined
  type?: 'text' | 'number'
  isRequired?: boolean
  placeholder?: string
}

/** A field for one line of text. */
export function TextField({
  label,
  value,
  onInput,
  hint,
  error,
  type = 'text',
  isRequired = false,
  placeholder,
}: TextFieldProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(attributes) => (
        <input
          {...attributes}
          type="text"
          inputMode={type === 'number' ? 'numeric' : 'text'}
          value={value}
          required={isRequired}
          autocomplete="off"
          spellcheck={false}
          {...(placeholder === undefined ? {} : { placeholder })}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

interface SelectFieldProps {
  label: string
  value: string
  options: readonly (string | [value: string, text: string])[]
  onInput: (value: string) => void
  hint?: ComponentChildren
  error?: string | undefined
}

/** A field with a fixed set of values. */
export function SelectField({ label, value, options, onInput, hint, error }: SelectFieldProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(attributes) => (
        <select {...attributes} value={value} onInput={(event) => onInput(event.currentTarget.value)}>
          {options.map((option) => {
            const [at, text] = typeof option === 'string' ? [option, option] : option
            return (
              <option key={at} value={at}>
                {text}
              </option>
            )
          })}
        </select>
      )}
    </Field>
  )
}
