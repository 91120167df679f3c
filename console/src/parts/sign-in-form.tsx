// The sign-in of a console: exchanges a key for a session. The key is in memory until the response, and then nowhere.
import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { Notice } from './feedback.tsx'
import { Field, Form, useAction } from './form.tsx'
import { Logo } from './logo.tsx'

interface SignInFormProps {
  title: string
  /** The name of the key. */
  label: string
  hint: ComponentChildren
  /** Whether a session has ended by itself. */
  hasEnded: boolean
  /** Exchanges the key, and returns what shows the console. */
  exchange: (key: string) => Promise<() => void>
}

/** The screen of users without a session. */
export function SignInForm({ title, label, hint, hasEnded, exchange }: SignInFormProps) {
  const action = useAction()
  const input = useRef<HTMLInputElement>(null)
  const [isVisible, setVisible] = useState(false)
  const submit = async () => {
    const field = input.current
    const enter = await exchange(field?.value ?? '')
    if (field !== null) field.value = ''
    enter()
  }
  return (
    <main class="lonely">
      <div class="sign-in card">
        <p class="brand-name">
          <Logo size={26} />
          Tenantry
        </p>
        <h1>{title}</h1>
        {hasEnded && <Notice kind="info">The session has ended. Sign in again to continue where you were.</Notice>}
        <Form action={action} onSubmit={submit} submit={['Sign in', 'Signing in …']}>
          <Field label={label} hint={hint}>
            {(attributes) => (
              <span class="with-button">
                <input
                  {...attributes}
                  ref={input}
                  {...(isVisible ? { type: 'text' as const } : { type: 'password' as const })}
                  required
                  autofocus
                  autocomplete="off"
                  spellcheck={false}
                />
                <button type="button" class="button" aria-pressed={isVisible} onClick={() => setVisible(!isVisible)}>
                  {isVisible ? 'Hide' : 'Show'}
                </button>
              </span>
            )}
          </Field>
        </Form>
      </div>
      <p class="lonely-note">The key is exchanged for a session of this browser, and is not stored.</p>
    </main>
  )
}
