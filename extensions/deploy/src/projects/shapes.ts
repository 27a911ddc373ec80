/** How projects are made, changed and shown. */
import { errors, joi } from '@portico/sdk';

import { fields, type ProjectInput, projectInput } from './schema.ts';

const { name, ...rest } = fields;

const shown = {
    id: joi.readOnly(joi.number().integer()).label('Number'),
    version: joi
        .number()
        .integer()
        .label('Version')
        .description('Acts as If-Match')
        .meta({ ui: { widget: 'hidden' } })
};

const states = {
    empty: 'Nothing deployed yet',
    deploying: 'A deployment is under way',
    live: 'Serves',
    stopped: 'Stopped',
    failed: 'Does not serve'
} as const;

const answered = {
    state: joi
        .readOnly(joi.choice(states))
        .label('State')
        .meta({
            ui: {
                column: 2,
                tones: {
                    empty: 'neutral',
                    deploying: 'busy',
                    live: 'good',
                    stopped: 'neutral',
                    failed: 'bad'
                }
            }
        }),
    runtime: joi
        .readOnly(
            joi
                .choice({
                    static: 'Files',
                    process: 'Programs',
                    container: 'An image',
                    compose: 'A compose file'
                })
                .allow(null)
        )
        .label('Runs as')
        .meta({ ui: { column: 3 } }),
    live: joi
        .readOnly(joi.number().integer().allow(null))
        .label('Deployment that serves')
        .meta({ ui: { column: 4 } }),
    hostId: joi
        .readOnly(joi.number().integer().allow(null))
        .label('Host')
        .meta({ ui: { column: false, ref: 'hosts.list' } }),
    hook: joi
        .readOnly(joi.boolean())
        .label('Has a hook')
        .meta({ ui: { column: false } })
};

/** The body that makes a project. */
export const newProject = projectInput.keys({ ...shown, ...answered });

/** The body that changes a project: each field that is there replaces the one before whole. */
export const projectChange = joi.object({ ...shown, ...rest, name: name(), ...answered });

/** A project as it is shown. */
export const projectSchema = projectInput.keys({
    id: joi.number().integer().required().label('Number'),
    version: joi
        .number()
        .integer()
        .required()
        .label('Version')
        .meta({ ui: { widget: 'hidden' } }),
    ...answered
});

/** States of a project. */
export type ProjectState = keyof typeof states;

/** What an admin says of a project, from what came by another way than a route. @throws VALIDATION_FAILED 40001 */
export function readProject(given: unknown): ProjectInput {
    const { error, value } = projectInput.required().validate(given);
    if (error !== undefined) {
        throw errors.invalid(error.details.map(({ path, message }) => ({ path: path.join('.'), message })));
    }
    return value as ProjectInput;
}
