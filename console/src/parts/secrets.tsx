// Secrets that the API returns once. Their values are only in memory: never in the page, its storage or its address.
import { useState } from 'preact/hooks'
import { Dialog } from './dialog.tsx'

interface SecretsProps {
  title: string
  /** The name of the file, without its ending. */
  file: string
  secrets: Record<string, string>
  onClose: () => void
}

/** Offers each secret to the clipboard, and all as a file. */
export function Secrets({ title, file, secrets, onClose }: SecretsProps) {
  const [result, setResult] = useState('')
  const [isTaken, setTaken] = useState(false)
  const copy = (name: string) => {
    navigator.clipboard.writeText(secrets[name] ?? '').then(
      () => {
        setTaken(true)
        setResult(`${name} is in the clipboard.`)
      },
      () => setResult('The browser does not allow copying here. Save the file instead.'),
    )
  }
  const save = () => {
    const url = URL.createObjectURL(
      new Blob([`${JSON.stringify(secrets, undefined, 2)}\n`], { type: 'application/json' }),
    )
    const link = document.createElement('a')
    link.href = url
    link.download = `${file}.json`
    link.click()
    URL.revokeObjectURL(url)
    setTaken(true)
    setResult(`${file}.json was saved.`)
  }
  return (
    <Dialog title={title} onClose={onClose} closesWithEscape={isTaken}>
      <div class="prose">
        <p>
          These secrets are available <strong>only now</strong>. The console does not show their values: copy them, or
          save them as a file.
        </p>
      </div>
      <ul class="secrets">
        {Object.keys(secrets).map((name) => (
          <li key={name}>
            <code>{name}</code>
            <button type="button" class="button small" onClick={() => copy(name)}>
              Copy {name}
            </button>
          </li>
        ))}
      </ul>
      <p role="status" class="form-result">
        {result}
      </p>
      <div class="form-actions">
        <button type="button" class="button primary" onClick={save}>
          Save as {file}.json
        </button>
        <button type="button" class="button" onClick={onClose}>
          {isTaken ? 'Done' : 'Continue without the secrets'}
        </button>
      </div>
    </Dialog>
  )
}
