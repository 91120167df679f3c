// Converts an engine's errors to the API's.
import type { EngineError, EngineErrorCode } from '../engines/index.ts'
import { ControlError, type ErrorCode } from '../platform/errors.ts'

const codes: Record<EngineErrorCode, ErrorCode> = {
  ENGINE_UNREACHABLE: 'ENGINE_UNREACHABLE',
  HOST_UNREACHABLE: 'ENGINE_UNREACHABLE',
  NOT_A_MANAGER: 'ENGINE_UNREACHABLE',
  IMAGE_MISSING: 'IMAGE_MISSING',
  LIMITS_BEYOND_HOST: 'LIMITS_BEYOND_HOST',
  NOT_FOUND: 'SERVICE_NOT_FOUND',
  ENGINE_TOO_OLD: 'ENGINE_FAILED',
  DISK_FULL: 'ENGINE_FAILED',
  PORT_TAKEN: 'ENGINE_FAILED',
  ADDRESS_TAKEN: 'ENGINE_FAILED',
  SUBNET_TAKEN: 'ENGINE_FAILED',
  SUBNETS_EXHAUSTED: 'ENGINE_FAILED',
  REGION_FULL: 'REGION_FULL',
  FOREIGN_OBJECT: 'ENGINE_FAILED',
  VOLUME_MISSING: 'ENGINE_FAILED',
  HOME_MISSING: 'ENGINE_FAILED',
  CONTAINER_LOST: 'ENGINE_FAILED',
  UNHEALTHY: 'ENGINE_FAILED',
  ENGINE_FAILED: 'ENGINE_FAILED',
}

/** Converts an engine's error, whose message is public. */
export function fromEngine(error: EngineError): ControlError {
  return new ControlError(codes[error.code], error.message, { cause: error })
}
