/** The errors that only this plugin has. */
import { defineErrors, type FailureError } from '@portico/sdk';

/** The plugin's own error table. */
export const fail = defineErrors({
    HOOK_REFUSED: { code: 40150, message: 'There is no such hook, or its token is wrong' },
    STACK_OWNED: { code: 40950, message: 'The plugin {owner} made it, so only that plugin changes it' },
    SPEC_CONSENT_REQUIRED: {
        code: 40951,
        message:
            'This exposes more than before ({what}): look at `plan`, and send its `consent` with the same request'
    },
    COMPOSE_INVALID: { code: 42250, message: 'The compose file is not valid' },
    COMPOSE_UNSUPPORTED: {
        code: 42251,
        message: 'The compose file has keys that are not carried out: {keys}'
    },
    DEPLOY_FAILED: { code: 42252, message: '{service}: {why}' },
    POLICY_REFUSED: {
        code: 42253,
        message:
            'The policy refuses {what}. An admin with the permission `unsafe` can allow exactly that by an exception'
    },
    ENGINE_REFUSED: { code: 42254, message: 'The engine refused it: {engine}' },
    TOO_MANY_SESSIONS: {
        code: 42950,
        message: 'There are {limit} sessions already: see the setting `sessions`'
    },
    ENGINE_LACKS: { code: 50150, message: 'This engine cannot do it: {what}' },
    REGISTRY_FAILED: { code: 50250, message: 'The registry did not do it: {message}' },
    ENGINE_DOWN: { code: 50350, message: 'The engine cannot be used now: {why}' }
});

/** What the engine itself said, without this plugin's words around it. */
export const engineWords = ({ message, data }: FailureError): string => String(data?.['engine'] ?? message);
