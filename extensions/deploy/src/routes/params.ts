/** Path parameters and checks that several groups of routes have. */
import { joi, type Request, requireVersion } from '@portico/sdk';

const id = (label: string, list: string) =>
    joi
        .number()
        .integer()
        .min(1)
        .required()
        .label(label)
        .meta({ ui: { ref: list } });

/** The number of a project. */
export const projectParams = joi.object({ id: id('Project', 'deploy.projects') });
/** The id of a deployment. */
export const deploymentParams = joi.object({
    id: joi.number().integer().min(1).required().label('Deployment')
});

/** The schema of the answer of a call that has nothing to say. */
export const nothing = joi.valid(null);

/** The version that a change was made for; that of the object where the caller does not say. @throws VERSION_STALE 41200 */
export function versionOf(
    object: { readonly version: number },
    { ifMatch }: Pick<Request, 'ifMatch'>,
    said?: number
): number {
    requireVersion(object, ifMatch, said);
    return object.version;
}
