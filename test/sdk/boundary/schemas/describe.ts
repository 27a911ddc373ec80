import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { joi } from '@portico/sdk';
import { describeSchema } from '@portico/sdk/host';
import Joi from 'joi';

export const lab = Lab.script();
const { describe, it } = lab;

describe('describeSchema', () => {
    it('says what joi says, and lets joi check again afterwards', () => {
        const schema = joi.object({
            name: joi.string().min(1).pattern(/^x/).label('Name').required(),
            tags: joi
                .array()
                .items(joi.choice({ a: 'A', b: 'B' }))
                .default([]),
            of: joi
                .alternatives(joi.number().integer(), joi.record(joi.boolean()))
                .meta({ ui: { column: 1 } })
        });
        expect(describeSchema(schema)).to.equal(schema.describe());
        expect(() => Joi.assert(1, Joi.string())).to.throw();
    });

    it('takes what stands for a schema', () => {
        const description = { type: 'object', keys: {} };
        expect(describeSchema({ describe: () => description } as never)).to.shallow.equal(description); // as the runtime of a plugin makes it
    });
});
