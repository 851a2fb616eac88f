"""The virtual file system: mounts, paths, permissions, copy-on-write trees, /proc.

Layout, lowest first (each imports only from those above it):

    model        records and constants: Credentials, Stat, mode and flag bits
    filesystem   Node, and the contract of a mountable file system
    space        exact accounting of bytes and inodes
    image_data   file content that comes with an image
    chunks       the pieces that hold the bytes of one file
    content      sparse, chunked, copy-on-write bytes of one file
    inode        what a tree stores per object
    layers       the inode table over frozen layers; FrozenTree, a tree at one moment
    store        inodes of a tree: attributes, bytes, lifetime, charges
    tree         TreeFs, the read-write file system: names over the store
    outside      OutsideTree, the interface to a mounted host directory
    lazy_table   its inodes and contents
    lazy_tree    LazyTree, a tree over a view of such a directory; the read-only mount
    overlay      OverlayTree: changes stay in the sandbox
    write_through
                 WriteThroughTree: changes go to the host
    changes      how a tree differs from its image
    image        ImageBuilder: makes the base that all sandboxes share
    standard     the directories, devices and /etc files every sandbox starts with
    permissions  who may do what, as pure functions
    mounts       which file system is mounted where
    resolver     the path walk, the only one
    nodes        operations on a node that is already found
    namespace    operations on paths: open, mkdir, rename ...
    proc         ProcFs, and ProcSource, its interface to the kernel

Rules: one `Namespace` per sandbox, called with the sandbox's lock held. Nothing here blocks, starts
threads or touches the host, except that image content is loaded on demand by the function given for
it. Every failure is a `KernelError`.

The rest of the kernel resolves a path to a `Node` (or calls `open_node`) and then works on the
node. A node that is kept across system calls (by an open description, as a working directory) must
be retained, and released once.
"""

from wasmsand.kernel.vfs.changes import Change, changes, inode_in, node_at, path_in
from wasmsand.kernel.vfs.content import FileContent
from wasmsand.kernel.vfs.filesystem import Attributes, Beneath, FileSystem, Node
from wasmsand.kernel.vfs.image import ImageBuilder
from wasmsand.kernel.vfs.inode import FileInode, SymlinkInode
from wasmsand.kernel.vfs.layers import FrozenTree, SharedTree
from wasmsand.kernel.vfs.model import NOW, ROOT, Credentials, DirEntry, FileTime, Stat, StatFs
from wasmsand.kernel.vfs.mounts import Mount
from wasmsand.kernel.vfs.namespace import Namespace
from wasmsand.kernel.vfs.proc import FdInfo, ProcessFacts, ProcFs, ProcSource, SystemInfo
from wasmsand.kernel.vfs.standard import standard_tree
from wasmsand.kernel.vfs.tree import TreeFs

__all__ = [
    "NOW",
    "ROOT",
    "Attributes",
    "Beneath",
    "Change",
    "Credentials",
    "DirEntry",
    "FdInfo",
    "FileContent",
    "FileInode",
    "FileSystem",
    "FileTime",
    "FrozenTree",
    "ImageBuilder",
    "Mount",
    "Namespace",
    "Node",
    "ProcFs",
    "ProcSource",
    "ProcessFacts",
    "SharedTree",
    "Stat",
    "StatFs",
    "SymlinkInode",
    "SystemInfo",
    "TreeFs",
    "changes",
    "inode_in",
    "node_at",
    "path_in",
    "standard_tree",
]
