// Reads the operator's file of backup targets.
import { readFileSync } from 'node:fs'
import type { S3Location } from '@tenantry/contract/s3'
import { Type } from 'typebox'
import { checkForm, shown } from '../platform/check-form.ts'
import { S3Bucket } from '../stacks/index.ts'
import { defaultName } from './directory-target.ts'

const closed = { additionalProperties: false }
const name = Type.String({ pattern: '^[a-z][a-z0-9-]{0,31}$' })
const TargetsFile = Type.Array(Type.Unknown(), { minItems: 1, maxItems: 8 })
const DirectoryTarget = Type.Object({ name, directory: Type.String({ pattern: '^/' }) }, closed)
const S3Target = Type.Object({ name, s3: S3Bucket }, closed)
const source = 'TENANTRY_BACKUP_TARGETS_FILE'

/** A backup target in addition to the directory `TENANTRY_BACKUPS`. */
export type TargetConfig = { name: string; directory: string } | { name: string; s3: S3Location }

/**
 * Reads the file of `TENANTRY_BACKUP_TARGETS_FILE`, and the files of secret keys that it names.
 * @throws Error that names the field, its value and what is allowed
 */
export function readTargets(text: string): TargetConfig[] {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (cause) {
    throw new Error(`${source} is not valid JSON`, { cause })
  }
  const names = new Set([defaultName])
  return checkForm(TargetsFile, json, `${source}: `).map((given, at) => {
    const target = readTarget(given, `${source}: [${at}].`)
    if (names.has(target.name))
      throw new Error(`${source}: [${at}].name is ${shown(target.name)}, which is the name of another target`)
    names.add(target.name)
    return target
  })
}

function readTarget(given: unknown, where: string): TargetConfig {
  if (typeof given !== 'object' || given === null || !('s3' in given)) return checkForm(DirectoryTarget, given, where)
  const { name, s3 } = checkForm(S3Target, given, where)
  const location = {
    endpoint: s3.endpoint,
    region: s3.region ?? 'us-east-1',
    bucket: s3.bucket,
    prefix: s3.prefix ?? '',
    pathStyle: s3.path_style ?? true,
    accessKeyId: s3.access_key_id,
  }
  try {
    return { name, s3: { ...location, secretAccessKey: readFileSync(s3.secret_access_key_file, 'utf8').trim() } }
  } catch (cause) {
    throw new Error(`${where}s3.secret_access_key_file is ${shown(s3.secret_access_key_file)}, which cannot be read`, {
      cause,
    })
  }
}
