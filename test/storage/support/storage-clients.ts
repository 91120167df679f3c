// The common interface of the published storage clients in both versions, and clients for each kind of caller.
import { createClient as createCurrent } from '@supabase/supabase-js'
import { createClient as createOlder } from 'supabase-js-2-109'

export interface Reply {
  data: unknown
  error: { name: string; message: string; status?: number | undefined; statusCode?: string | undefined } | null
}

export type FileBody = string | ArrayBuffer | Uint8Array | Blob | FormData | ReadableStream<Uint8Array>

/** The client of one bucket, `storage.from(bucket)`. */
export interface Files {
  upload(path: string, body: FileBody, options?: object): Promise<Reply>
  update(path: string, body: FileBody, options?: object): Promise<Reply>
  download(path: string, options?: object): PromiseLike<Reply> & { asStream(): PromiseLike<Reply> }
  info(path: string, options?: object): Promise<Reply>
  exists(path: string): Promise<Reply>
  list(path?: string, options?: object): Promise<Reply>
  listV2(options?: object): Promise<Reply>
  move(from: string, to: string, options?: object): Promise<Reply>
  copy(from: string, to: string, options?: object): Promise<Reply>
  remove(paths: (string | { path: string; versionId: string })[]): Promise<Reply>
  createSignedUrl(path: string, seconds: number, options?: object): Promise<Reply>
  createSignedUrls(paths: string[], seconds: number, options?: object): Promise<Reply>
  createSignedUploadUrl(path: string, options?: object): Promise<Reply>
  uploadToSignedUrl(path: string, token: string, body: FileBody, options?: object): Promise<Reply>
  getPublicUrl(path: string, options?: object): { data: { publicUrl: string } }
  purgeCache(path: string, options?: object): Promise<Reply>
}

export interface Storage {
  from(bucket: string): Files
  createBucket(name: string, options?: object): Promise<Reply>
  getBucket(name: string): Promise<Reply>
  listBuckets(options?: object): Promise<Reply>
  updateBucket(name: string, options: object): Promise<Reply>
  emptyBucket(name: string): Promise<Reply>
  deleteBucket(name: string): Promise<Reply>
  purgeBucketCache(name: string, options?: object): Promise<Reply>
  readonly vectors: { from(bucket: string): { index(name: string): object } }
  readonly analytics: { from(bucket: string): { listNamespaces(): Promise<{ error: unknown }> } }
}

/** A tenant as its developers know it. */
export interface Tenancy {
  url: string
  publishableKey: string
  secretKey: string
  /** Returns a signed-in user's token. */
  token(sub: string): string
}

const options = { auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false } }

const makers: Record<string, (url: string, key: string, headers: Record<string, string>) => Storage> = {
  '2.109.0': (url, key, headers) => createOlder(url, key, { ...options, global: { headers } }).storage,
  '2.119.0': (url, key, headers) => createCurrent(url, key, { ...options, global: { headers } }).storage,
}

export const versions = Object.keys(makers)
export const currentVersion = '2.119.0'

/** @param caller a user's ID, `service`, or undefined for an anonymous caller */
export function storageOf(
  { url, publishableKey, secretKey, token }: Tenancy,
  caller: string | undefined,
  version = currentVersion,
): Storage {
  const make = makers[version]
  if (make === undefined) throw new Error(`there is no client ${version}`)
  if (caller === 'service') return make(url, secretKey, {})
  return make(url, publishableKey, caller === undefined ? {} : { authorization: `Bearer ${token(caller)}` })
}

/** Returns the names of all methods and accessors that an object has from its classes. */
export function methodsOf(target: object): string[] {
  const names = new Set<string>()
  for (
    let at: unknown = Object.getPrototypeOf(target);
    typeof at === 'object' && at !== null && at !== Object.prototype;
    at = Object.getPrototypeOf(at)
  ) {
    for (const name of Object.getOwnPropertyNames(at)) if (name !== 'constructor') names.add(name)
  }
  return [...names].sort()
}
