// Uploads of files with their progress, which `fetch` cannot report.
import { ApiError, errorOf, sessionHeaders, urlOf } from '../../api/client.ts'

/** Returns the path of an object in the API. */
export function objectPath(kind: 'object' | 'object/sign', bucket: string, path: string): string {
  return `/storage/v1/${kind}/${[bucket, ...path.split('/')].map(encodeURIComponent).join('/')}`
}

/**
 * Uploads a file, which replaces one of the same path.
 * @param onProgress receives the sent share, from 0 to 1
 * @throws ApiError
 */
export function upload(bucket: string, path: string, file: File, onProgress: (share: number) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open('POST', urlOf(objectPath('object', bucket, path)))
    const type = file.type === '' ? 'application/octet-stream' : file.type
    for (const [name, value] of Object.entries({ 'content-type': type, ...sessionHeaders('POST') }))
      request.setRequestHeader(name, value)
    request.upload.addEventListener('progress', ({ loaded, total }) => onProgress(total === 0 ? 1 : loaded / total))
    request.addEventListener('error', () =>
      reject(new ApiError(0, 'UNREACHABLE', `The upload of ${file.name} was interrupted.`, undefined)),
    )
    request.addEventListener('load', () => {
      if (request.status < 300) resolve()
      else reject(errorOf(request.status, request.getResponseHeader('x-request-id'), request.responseText))
    })
    request.send(file)
  })
}
