//! Parts into which estimates divide times and memory.

use crate::traits::words;

words! {
    /// Part of the time of an optimizer step, or of an output token.
    TimePart {
        /// Matrix multiplications of a training step.
        Gemm = "gemm",
        /// Attention of a training step.
        Attention = "attention",
        /// Memory-bound operators.
        Elementwise = "elementwise",
        /// Recomputation.
        Recompute = "recompute",
        /// Waiting for the host, and host work between the steps of a serving engine.
        Host = "host",
        /// Exposed tensor-parallel communication.
        TensorParallel = "tensor parallel",
        /// Exposed context-parallel communication.
        ContextParallel = "context parallel",
        /// Exposed expert dispatch and combine.
        ExpertParallel = "expert parallel",
        /// Exposed transfers between stages.
        PipelineTransfer = "pipeline transfer",
        /// Pipeline bubble.
        PipelineBubble = "pipeline bubble",
        /// Exposed gradient reduction and weight gathering.
        DataParallel = "data parallel",
        /// Optimizer and per-step overhead.
        Optimizer = "optimizer",
        /// Exposed transfers to and from the host, and computation on the host.
        Offload = "offload",
        /// Encoding images.
        Images = "images",
        /// Waiting for data, in simulations.
        DataLoading = "data loading",
        /// Waiting for slow accelerators, in simulations.
        Stragglers = "stragglers",
        /// Lost work, restarts and checkpoints, in simulations.
        Failures = "failures",
        /// Computation: linear layers and attention of a serving step, or everything that a coarser model does not divide.
        Compute = "compute",
        /// Reading weights.
        Weights = "weights",
        /// Reading the KV cache.
        KvCache = "KV cache",
        /// Reading and writing activations outside GEMMs.
        Activations = "activations",
        /// Collectives and transfers that are not divided by parallelism.
        Communication = "communication",
        /// Kernel launches, and gaps between kernels.
        Launch = "launch",
        /// All collectives, in a model that does not tell them apart.
        AllReduce = "all-reduce",
    }

    /// Part of the memory of a device.
    MemoryPart {
        /// Weights.
        Weights = "weights",
        /// Gradients.
        Gradients = "gradients",
        /// Weights and gradients, in a model that does not tell them apart.
        WeightsAndGradients = "weights and gradients",
        /// Optimizer states and master weights.
        Optimizer = "optimizer",
        /// Optimizer states, in a model that counts master weights as weights.
        OptimizerStates = "optimizer states",
        /// Activations kept for the backward pass.
        Activations = "activations",
        /// Activations of the layer that is being recomputed.
        RecomputedLayer = "recomputed layer",
        /// Logits and their gradient.
        Logits = "logits",
        /// Collective buffers, gathered layers, library workspaces.
        Buffers = "buffers",
        /// Memory that the allocator reserves beyond its allocations.
        Fragmentation = "fragmentation",
        /// Driver context and framework reserve.
        Reserve = "reserve",
        /// KV cache of the running sequences.
        KvCache = "KV cache",
        /// What a serving engine needs besides weights and KV cache.
        EngineReserve = "engine reserve",
    }

    /// Part of the time to first token.
    FirstTokenPart {
        /// Waiting for a free batch slot.
        Slot = "slot",
        /// Waiting for the current step and for earlier prompts.
        Queue = "queue",
        /// Waiting behind prompts that arrived together with this one.
        Burst = "burst",
        /// Prefill of the request itself.
        Prefill = "prefill",
        /// Accepting, tokenizing and the first response.
        Overhead = "overhead",
    }
}
