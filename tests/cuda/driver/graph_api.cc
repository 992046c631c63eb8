// SPDX-License-Identifier: Apache-2.0
// cuStreamBeginCapture and its like, cuGraph*.
#include <algorithm>

#include "tests/cuda/driver/entry.h"
#include "tests/cuda/driver/launch.h"

namespace {

using forge::emulated::Device;
using forge::emulated::Graph;
using forge::emulated::GraphExec;
using forge::emulated::GraphNode;
using forge::emulated::MakeLaunch;
using forge::emulated::Schedule;
using forge::emulated::ValidStream;

bool ValidGraph(CUgraph graph) { return Device::Get().graphs.Has(graph); }
bool ValidExec(CUgraphExec exec) { return Device::Get().graph_execs.Has(exec); }

CUresult Instantiate(CUgraphExec* exec, CUgraph graph) {
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!ValidGraph(graph)) return CUDA_ERROR_INVALID_HANDLE;
  auto owned = std::make_unique<GraphExec>();
  for (const auto& node : graph->nodes) owned->nodes.push_back(std::make_unique<GraphNode>(*node));
  *exec = Device::Get().graph_execs.Add(std::move(owned));
  return CUDA_SUCCESS;
}

// The place of a node in a graph, or its size.
size_t IndexOf(const Graph& graph, const GraphNode* node) {
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                  [&](const auto& n) { return n.get() == node; });
  return static_cast<size_t>(found - graph.nodes.begin());
}

CUresult AddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* waits, size_t count,
                 GraphNode node) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!ValidGraph(graph)) return CUDA_ERROR_INVALID_HANDLE;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = IndexOf(*graph, waits[i]);
    if (at == graph->nodes.size()) return CUDA_ERROR_INVALID_VALUE;
    node.waits.push_back(at);
  }
  node.index = graph->nodes.size();
  graph->nodes.push_back(std::make_unique<GraphNode>(std::move(node)));
  *out = graph->nodes.back().get();
  return CUDA_SUCCESS;
}

}  // namespace

CU_API cuStreamBeginCapture_v2(CUstream stream, int) {
  CU_ENTER_CONTEXT(cuStreamBeginCapture_v2);
  return ValidStream(stream) ? Schedule::Get().BeginCapture(stream) : CUDA_ERROR_INVALID_HANDLE;
}

CU_API cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  CU_ENTER_CONTEXT(cuStreamEndCapture);
  if (!ValidStream(stream) || graph == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::unique_ptr<Graph> owned;
  const CUresult result = Schedule::Get().EndCapture(stream, owned);
  *graph = result == CUDA_SUCCESS ? Device::Get().graphs.Add(std::move(owned)) : nullptr;
  return result;
}

CU_API cuStreamIsCapturing(CUstream stream, int* status) {
  CU_ENTER_CONTEXT(cuStreamIsCapturing);
  if (!ValidStream(stream) || status == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *status = Schedule::Get().Capturing(stream) ? 1 : 0;
  return CUDA_SUCCESS;
}

CU_API cuThreadExchangeStreamCaptureMode(int* mode) {
  CU_ENTER(cuThreadExchangeStreamCaptureMode);
  thread_local int current = 0;
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::swap(current, *mode);
  return CUDA_SUCCESS;
}

CU_API cuGraphCreate(CUgraph* graph, unsigned) {
  CU_ENTER_CONTEXT(cuGraphCreate);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *graph = Device::Get().graphs.Add(std::make_unique<Graph>());
  return CUDA_SUCCESS;
}

CU_API cuGraphDestroy(CUgraph graph) {
  CU_ENTER(cuGraphDestroy);
  return Device::Get().graphs.Remove(graph) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CU_API cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  CU_ENTER_CONTEXT(cuGraphGetNodes);
  if (!ValidGraph(graph) || count == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const size_t n = graph->nodes.size();
  if (nodes != nullptr)
    for (size_t i = 0; i < std::min(*count, n); ++i) nodes[i] = graph->nodes[i].get();
  *count = n;
  return CUDA_SUCCESS;
}

CU_API cuGraphNodeGetType(CUgraphNode node, int* type) {
  CU_ENTER_CONTEXT(cuGraphNodeGetType);
  if (node == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = static_cast<int>(node->type);
  return CUDA_SUCCESS;
}

CU_API cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* waits,
                               size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  CU_ENTER_CONTEXT(cuGraphAddKernelNode_v2);
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphNode node;
  if (const CUresult result = MakeLaunch(*params, node); result != CUDA_SUCCESS) return result;
  return AddNode(out, graph, waits, count, std::move(node));
}

CU_API cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* waits,
                           size_t count) {
  CU_ENTER_CONTEXT(cuGraphAddEmptyNode);
  return AddNode(out, graph, waits, count, {});
}

CU_API cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
  CU_ENTER_CONTEXT(cuGraphKernelNodeGetParams_v2);
  if (node == nullptr || params == nullptr || node->type != GraphNode::Type::kKernel)
    return CUDA_ERROR_INVALID_VALUE;
  *params = node->kernel;
  node->pointers.clear();
  for (std::vector<uint8_t>& a : node->arguments) node->pointers.push_back(a.data());
  params->params = node->pointers.data();
  params->extra = nullptr;
  return CUDA_SUCCESS;
}

CU_API cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  CU_ENTER_CONTEXT(cuGraphKernelNodeSetParams_v2);
  if (node == nullptr || params == nullptr || node->type != GraphNode::Type::kKernel)
    return CUDA_ERROR_INVALID_VALUE;
  return MakeLaunch(*params, *node);
}

CU_API cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  CU_ENTER_CONTEXT(cuGraphInstantiateWithFlags);
  return Instantiate(exec, graph);
}

CU_API cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode*, char*, size_t) {
  CU_ENTER_CONTEXT(cuGraphInstantiate_v2);
  return Instantiate(exec, graph);
}

CU_API cuGraphExecDestroy(CUgraphExec exec) {
  CU_ENTER(cuGraphExecDestroy);
  return Device::Get().graph_execs.Remove(exec) == nullptr ? CUDA_ERROR_INVALID_HANDLE
                                                           : CUDA_SUCCESS;
}

CU_API cuGraphUpload(CUgraphExec exec, CUstream stream) {
  CU_ENTER_CONTEXT(cuGraphUpload);
  return ValidExec(exec) && ValidStream(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CU_API cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  CU_ENTER_CONTEXT(cuGraphLaunch);
  if (!ValidExec(exec) || !ValidStream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  return Schedule::Get().Launch(*exec, stream);
}

CU_API cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                         const CUDA_KERNEL_NODE_PARAMS* params) {
  CU_ENTER_CONTEXT(cuGraphExecKernelNodeSetParams_v2);
  if (!ValidExec(exec)) return CUDA_ERROR_INVALID_HANDLE;
  if (node == nullptr || params == nullptr || node->index >= exec->nodes.size() ||
      exec->nodes[node->index]->type != GraphNode::Type::kKernel)
    return CUDA_ERROR_INVALID_VALUE;
  return MakeLaunch(*params, *exec->nodes[node->index]);
}

CU_API cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  CU_ENTER_CONTEXT(cuGraphExecUpdate_v2);
  if (!ValidExec(exec) || !ValidGraph(graph)) return CUDA_ERROR_INVALID_HANDLE;
  bool same = exec->nodes.size() == graph->nodes.size();
  for (size_t i = 0; same && i < graph->nodes.size(); ++i)
    same = exec->nodes[i]->type == graph->nodes[i]->type &&
           exec->nodes[i]->waits == graph->nodes[i]->waits;
  if (info != nullptr) *info = {same ? 0 : 2, nullptr, nullptr};
  if (!same) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  for (size_t i = 0; i < graph->nodes.size(); ++i) *exec->nodes[i] = *graph->nodes[i];
  return CUDA_SUCCESS;
}
