/** What answers say of rules, zones, sets, NAT and policies. */
import { joi, type Value } from '@portico/sdk';

import { newNat, newRule, newService, newSet, newZone } from './schema.ts';

const id = joi
    .number()
    .integer()
    .required()
    .label('Number')
    .meta({ ui: { column: false } });
const version = joi
    .number()
    .integer()
    .required()
    .label('Version')
    .meta({ ui: { column: false } });
const count = joi.number().integer().allow(null).required();

/** A rule in answers. */
export const ruleView = newRule.keys({
    id,
    version,
    position: joi
        .number()
        .integer()
        .required()
        .label('Position')
        .meta({ ui: { column: false } }),
    packets: count
        .label('Packets')
        .description('null while it is not in the kernel')
        .meta({ ui: { column: 9 } }),
    bytes: count
        .label('Bytes')
        .unit('byte')
        .meta({ ui: { column: 10 } }),
    warnings: joi
        .array()
        .items(joi.string())
        .required()
        .label('Warnings')
        .description('What of other programs makes it idle')
});
/** A rule in answers. */
export type RuleView = Value<typeof ruleView>;
/** A zone in answers. */
export const zoneView = newZone.keys({ id, version });
/** A set in answers. */
export const setView = newSet.keys({
    id,
    version,
    elements: joi
        .number()
        .integer()
        .required()
        .label('Elements')
        .meta({ ui: { column: 4 } }),
    skipped: joi.number().integer().required().label('Lines skipped'),
    updatedAt: joi
        .string()
        .isoDate()
        .allow(null)
        .required()
        .label('Fetched')
        .meta({ ui: { column: 5 } }),
    error: joi
        .string()
        .allow(null)
        .required()
        .label('Failure')
        .description('Why the last fetch failed; the elements before it are kept')
});
/** A set in answers. */
export type SetView = Value<typeof setView>;
/** A translation in answers. */
export const natView = newNat.keys({ id, version });
/** A service in answers. */
export const serviceView = newService.keys({
    builtIn: joi
        .boolean()
        .required()
        .label('Built in')
        .meta({ ui: { column: 3 } })
});
const action = joi.choice({ accept: 'Accept', drop: 'Drop', reject: 'Reject' }).required();
/** The policies in answers. */
export const policyView = joi.object({
    input: action.label('To this machine'),
    output: action.label('From this machine'),
    forward: action.label('Through this machine'),
    container: action.label('To published ports')
});
