/** The file table: one folder a name, in it one empty file whose own name is the entry. One rename changes a name's behaviour without a reload. */

/** One name's move. `from` null: the name is new; `to` null: the name goes. */
export interface TableMove {
    readonly name: string;
    readonly from: string | null;
    readonly to: string | null;
}

export type TablePatch = readonly TableMove[];
