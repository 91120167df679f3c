// One file: an image or the begin of a text, its download, and signed URLs.
import { useEffect, useState } from 'preact/hooks'
import { call, request } from '../../api/client.ts'
import { toApiError } from '../../api/use-load.ts'
import type { ApiError } from '../../api/client.ts'
import { exactBytes } from '../../format/numbers.ts'
import { utc } from '../../format/times.ts'
import { Facts, Snippet } from '../../parts/basics.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { ErrorBox, Loading } from '../../parts/feedback.tsx'
import { Form, SelectField, useAction } from '../../parts/form.tsx'
import { objectPath } from './upload.ts'

/** A file of a bucket. */
export interface StoredFile {
  path: string
  /** The content type; empty if it is unknown. */
  type: string
  size: number
}

interface SignedUrl {
  /** The path on the tenant's host. */
  url: string
  /** ISO 8601. */
  expires_at: string
}

const maxTextBytes = 100_000
const previewSeconds = 300

/** A dialog with the file. */
export function Preview({ bucket, file, onClose }: { bucket: string; file: StoredFile; onClose: () => void }) {
  const { path, type, size } = file
  return (
    <Dialog title={path.split('/').at(-1) ?? path} onClose={onClose}>
      <Facts
        facts={[
          ['Path', <code key="path">{path}</code>],
          ['Type', type === '' ? '–' : type],
          ['Size', exactBytes(size)],
        ]}
      />
      {/^image\/(?:png|jpeg|gif|webp|avif|bmp)$/.test(type) && <Picture bucket={bucket} path={path} />}
      {/^(?:text\/|application\/json)/.test(type) && <Text bucket={bucket} path={path} />}
      <Sign bucket={bucket} path={path} />
    </Dialog>
  )
}

async function sign(bucket: string, path: string, seconds: number): Promise<SignedUrl> {
  return (await call<SignedUrl>('POST', `${objectPath('object/sign', bucket, path)}?expires_in=${seconds}`)).body
}

function Picture({ bucket, path }: { bucket: string; path: string }) {
  const { value, error } = useOnce(() => sign(bucket, path, previewSeconds), `${bucket}/${path}`)
  if (error !== undefined) return <ErrorBox error={error} />
  if (value === undefined) return <Loading what="the image" />
  return <img class="preview" src={value.url} alt={`Preview of ${path}`} />
}

function Text({ bucket, path }: { bucket: string; path: string }) {
  const { value, error } = useOnce(async () => {
    const headers = { range: `bytes=0-${maxTextBytes - 1}`, accept: '*/*' }
    const response = await request('GET', objectPath('object', bucket, path), { headers })
    return response.text()
  }, `${bucket}/${path}`)
  if (error?.status === 416) return <p class="dim">The file is empty.</p>
  if (error !== undefined) return <ErrorBox error={error} />
  if (value === undefined) return <Loading what="the text" />
  return (
    <pre class="preview" tabIndex={0} aria-label={`Preview of ${path}`}>
      {value}
    </pre>
  )
}

function useOnce<Value>(load: () => Promise<Value>, key: string) {
  const [state, setState] = useState<{ value?: Value; error?: ApiError }>({})
  useEffect(() => {
    load().then(
      (value) => setState({ value }),
      (error: unknown) => setState({ error: toApiError(error) }),
    )
  }, [key])
  return state
}

function Sign({ bucket, path }: { bucket: string; path: string }) {
  const action = useAction()
  const [seconds, setSeconds] = useState('3600')
  const [signed, setSigned] = useState<SignedUrl | undefined>(undefined)
  return (
    <>
      <Form
        action={action}
        submit={['Sign a URL', 'Signing …']}
        onSubmit={async () => setSigned(await sign(bucket, path, Number(seconds)))}
      >
        <SelectField
          label="Signed URL, valid for"
          value={seconds}
          onInput={setSeconds}
          options={[
            ['300', '5 minutes'],
            ['3600', 'an hour'],
            ['86400', 'a day'],
            ['604800', 'a week'],
          ]}
          hint="Whoever has the URL may read the file."
        />
      </Form>
      {signed !== undefined && (
        <Snippet title={`Valid until ${utc(signed.expires_at)}`} code={new URL(signed.url, location.href).href} />
      )}
    </>
  )
}
