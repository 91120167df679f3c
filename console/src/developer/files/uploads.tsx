// The place where files are dropped or chosen, and the uploads with their progress. Files can be dropped anywhere on the folder.
import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { toApiError } from '../../api/use-load.ts'
import { Card } from '../../parts/basics.tsx'
import { ErrorBox } from '../../parts/feedback.tsx'
import { upload } from './upload.ts'

interface Upload {
  number: number
  name: string
  /** The sent share, from 0 to 1. */
  share: number
  state: 'waiting' | 'running' | 'done' | ApiError
}

interface UploadsProps {
  bucket: string
  /** The folder, with its slash; empty for the bucket itself. */
  prefix: string
  onDone: () => void
  /** The folder, on which files can be dropped too. */
  children: ComponentChildren
}

/** Uploads files one after the other. */
export function Uploads({ bucket, prefix, onDone, children }: UploadsProps) {
  const [uploads, setUploads] = useState<Upload[]>([])
  const [isOver, setOver] = useState(false)
  const count = useRef(0)
  const last = useRef<Promise<void>>(Promise.resolve())
  const change = (number: number, part: Partial<Upload>) =>
    setUploads((before) => before.map((one) => (one.number === number ? { ...one, ...part } : one)))
  const send = async (number: number, file: File) => {
    change(number, { state: 'running' })
    try {
      await upload(bucket, `${prefix}${file.name}`, file, (share) => change(number, { share }))
      change(number, { state: 'done', share: 1 })
    } catch (error) {
      change(number, { state: toApiError(error) })
    }
  }
  const begin = ({ files, folders }: Chosen) => {
    if (files.length + folders.length === 0) return
    const numbered = files.map((file) => ({ number: count.current++, file }))
    setUploads((before) => [
      ...before.filter(({ state }) => state === 'waiting' || state === 'running'),
      ...numbered.map(({ number, file }): Upload => ({ number, name: file.name, share: 0, state: 'waiting' })),
      ...folders.map((name): Upload => ({ number: count.current++, name, share: 0, state: folderError(name) })),
    ])
    last.current = last.current.then(async () => {
      for (const { number, file } of numbered) await send(number, file)
      if (numbered.length > 0) onDone()
    })
  }
  return (
    <div
      class={isOver ? 'drop-over' : ''}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={({ currentTarget, relatedTarget }) => {
        if (!(relatedTarget instanceof Node && currentTarget.contains(relatedTarget))) setOver(false)
      }}
      onDrop={(event) => {
        event.preventDefault()
        setOver(false)
        begin(chosenBy(event.dataTransfer))
      }}
    >
      <Card title="Upload">
        <label class="drop-field">
          <span class="drop-title">Drop files here, or choose them</span>
          <span class="dim">
            They are stored in {bucket}/{prefix}, and replace files of the same name.
          </span>
          <input
            class="drop-input"
            type="file"
            multiple
            onChange={(event) => {
              const input = event.currentTarget
              const files = [...(input.files ?? [])]
              input.value = ''
              begin({ files, folders: [] })
            }}
          />
        </label>
        {uploads.length > 0 && (
          <ul class="uploads" aria-label="Uploads">
            {uploads.map(({ number, name, share, state }) => (
              <li key={number}>
                <span>{name}</span>
                {state instanceof ApiError ? (
                  <ErrorBox error={state} />
                ) : (
                  <>
                    <progress aria-label={`Upload of ${name}`} max={1} value={share} />
                    <span role="status" class="upload-state">
                      {state === 'done' ? 'uploaded' : `${Math.floor(share * 100)} %`}
                    </span>
                  </>
                )}
              </li>
            ))}
          </ul>
        )}
      </Card>
      {children}
    </div>
  )
}

interface Chosen {
  files: File[]
  /** Names of folders, which cannot be uploaded. */
  folders: string[]
}

function chosenBy(transfer: DataTransfer | null): Chosen {
  const chosen: Chosen = { files: [], folders: [] }
  for (const item of transfer?.items ?? []) {
    const file = item.getAsFile()
    if (file === null) continue
    if (item.webkitGetAsEntry()?.isDirectory === true) chosen.folders.push(file.name)
    else chosen.files.push(file)
  }
  return chosen
}

function folderError(name: string): ApiError {
  return new ApiError(0, 'FOLDER', `${name} is a folder. Drop the files in it instead.`, undefined)
}
