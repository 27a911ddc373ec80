/** Turns failures of the registry package into errors of the API. */
import { InstallFailure } from '@portico/registry';

import { fail, invalid } from '../../../platform/errors.ts';

/** Throws the API error for a failed install. Other errors, and a cancelled install, are thrown as they are: the task handles them. */
export function installFailed(error: unknown): never {
    if (!(error instanceof InstallFailure)) {
        throw error;
    }
    const { code, message, failure } = error;
    switch (code) {
        case 'SPEC_REFUSED':
            throw invalid({ path: 'package', message });
        case 'PACKAGE_NOT_FOUND':
            throw fail.NOT_FOUND({ cause: code }, { message, cause: error });
        case 'REGISTRY_UNREACHABLE':
            throw fail.NOT_READY({ cause: code }, { message, cause: error });
        case 'STORAGE_FULL':
            throw fail.STORAGE_FULL(null, { message, cause: error });
        case 'CANCELLED':
            throw error;
        default:
            throw fail.PACKAGE_REFUSED(
                { cause: failure?.code ?? code, stage: failure?.stage ?? 'discovered' },
                { message, cause: error }
            );
    }
}
