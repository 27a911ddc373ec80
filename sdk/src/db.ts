/** What a plugin needs of MikroORM, from the one copy that the host supplies; a copy of the plugin's own is refused. */
export {
    defineEntity,
    p,
    raw,
    sql,
    UniqueConstraintViolationException,
    type EntityDTO,
    type EntityManager,
    type EntitySchema,
    type FilterQuery,
    type InferEntity,
    type Loaded,
    type QueryOrder,
    type RequiredEntityData
} from '@mikro-orm/sqlite';
export { findRow, findRows, type Row, type RowOptions } from './helpers/rows.ts';
