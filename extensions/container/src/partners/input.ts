/** What partners give: checked as what people give is. */
import { type AnySchema, errors, joi, type Value } from '@portico/sdk';

import { compose, env, stackName } from '../routes/stacks/compose.ts';
import { imageName } from '../spec/input.ts';
import { stackActions } from '../stacks/changes.ts';

const sourceFields = {
    name: stackName,
    compose: compose.required(),
    env: env.default(''),
    digests: joi.record(joi.string())
};
const waitSeconds = joi.number().integer().min(1).max(900).default(60);
/** What a partner gives to `apply`. */
export const applySchema = joi.object({
    ...sourceFields,
    description: joi.string().allow('').max(2_000),
    start: joi.boolean().default(true),
    waitSeconds,
    onFailure: joi.valid('rollback', 'keep').default('rollback'),
    consent: joi.string().max(100)
});
/** What a partner gives to `plan`. */
export const planSchema = joi.object(sourceFields);
/** What a partner gives to `rollback`. */
export const rollbackSchema = joi.object({
    stack: stackName,
    revision: joi.number().integer().min(1).required(),
    waitSeconds,
    consent: joi.string().max(100)
});
/** What a partner gives to `exec`. */
export const execSchema = joi.object({
    stack: stackName,
    service: joi.string().max(63).required(),
    command: joi.array().items(joi.string().allow('').max(32_768)).min(1).max(200).required(),
    user: joi.string().max(100),
    env: joi.record(joi.string().allow('').max(131_072)).default({}),
    timeoutSeconds: joi.number().integer().min(1).max(86_400).default(30)
});
/** What a partner gives to `buildBegin`. */
export const buildSchema = joi.object({
    tag: imageName(),
    dockerfile: joi.string().max(1_000).default('Dockerfile'),
    target: joi.string().max(200),
    args: joi.record(joi.string().allow('').max(131_072)).default({}),
    noCache: joi.boolean().default(false),
    network: joi.boolean().default(true),
    memoryBytes: joi
        .number()
        .integer()
        .min(2 ** 22),
    cpus: joi.number().min(0.01).max(1_024)
});

/** What a partner gives to `snapshot`. */
export const snapshotSchema = joi.object({
    stack: stackName,
    volumes: joi.array().items(joi.string().max(255)).max(1_000)
});
/** What a partner gives to `pull`. */
export const pullSchema = joi.object({
    image: imageName().required(),
    missing: joi.boolean().default(false)
});
/** What a partner gives to `control`. */
export const controlSchema = joi.object({
    stack: stackName,
    action: joi.valid(...stackActions).required(),
    services: joi.array().items(joi.string().max(63)).max(100).default([]),
    pull: joi.boolean().default(false)
});

interface Checks {
    validate(
        value: unknown,
        options: { readonly abortEarly: boolean }
    ): {
        readonly value: unknown;
        readonly error?:
            | {
                  readonly details: readonly {
                      readonly path: readonly (string | number)[];
                      readonly message: string;
                  }[];
              }
            | undefined;
    };
}

/** What a partner gave, as the schema says. @throws VALIDATION_FAILED 40001 */
export function checked<S extends AnySchema & Checks>(schema: S, input: unknown): Value<S> {
    const { value, error } = schema.validate(input ?? {}, { abortEarly: false });
    if (error !== undefined) {
        throw errors.invalid(error.details.map(({ path, message }) => ({ path: path.join('.'), message })));
    }
    return value as Value<S>;
}
